"""Pictures: every tile where and as it should be, films of recorded games, drawings in notebooks."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from tilesage import cli, games
from tilesage.app import film
from tilesage.drawing import palette, pictures
from tilesage.records.record import Place, Record, Slide, record_of, write_records
from tilesage.records.replay import moments_of

SVG = "{http://www.w3.org/2000/svg}"
every_game = pytest.mark.parametrize("name", games.names())
both_themes = pytest.mark.parametrize("theme", palette.THEMES)


def full_board(name):
    """A position with the sixteen largest tiles of the game."""
    game = games.get(name)
    cells = [*range(1, len(game.tiles))][-16:]
    board, aux = game.read([0] * (16 - len(cells)) + cells, {"hint": "2"} if game.hint else {})
    return games.State(game, board, aux, 1234567, 89)


def random_game(name, seed):
    """A record of a random game, and its positions as the engine played them."""
    state, actions = games.get(name).new(seed), []
    states, rng = [state], np.random.default_rng(seed)
    while not state.over:
        actions.append(int(rng.choice(state.legal)))
        state = state.play(actions[-1])
        states.append(state)
    return record_of(states[0], actions, slider="random"), states


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "threes.txt"
    write_records(path, [random_game("threes", seed)[0] for seed in range(1, 6)])
    return path


# --- one position -------------------------------------------------------------------------------------------------


@every_game
@both_themes
def test_every_tile_has_its_colour_in_the_picture(name, theme):
    state = full_board(name)
    image = pictures.picture(state, theme)
    for cell, index in enumerate(state.indices):
        x, y = pictures.cell_corner(cell)
        shown = image.getpixel((int(x) + pictures.TILE // 2, int(y) + 6))
        assert shown == palette.rgb(palette.paint(name, index, theme).background)


@pytest.mark.parametrize("number", ["1", "24", "768", "4096", "12288", "131072"])
def test_every_number_fits_its_tile(number):
    left, _, right, _ = pictures.font(pictures.number_size(number)).getbbox(number)
    assert 0.2 * pictures.TILE < right - left < 0.88 * pictures.TILE


@every_game
def test_the_same_position_makes_the_same_picture(name):
    state = games.get(name).new(3)
    assert pictures.png(state) == pictures.png(state)
    assert pictures.picture(state) != pictures.picture(state.play(state.legal[0]))


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_the_scale_is_the_size(scale):
    image = pictures.picture(games.get("2048").new(1), scale=scale)
    assert image.size == (round(480 * scale), round(552 * scale))


def test_a_new_tile_is_ringed_and_the_end_is_veiled():
    state = games.get("2048").parse("2 4 8 16 0 0 0 0 0 0 0 0 0 0 0 2")
    plain, ringed, veiled = (pictures.picture(state, **kind) for kind in ({}, {"new": 15}, {"veil": "game over"}))
    x, y = map(int, pictures.cell_corner(15))
    beside = (x - 2, y + pictures.TILE // 2)
    assert plain.getpixel(beside) == palette.rgb(palette.BOARD["light"])
    assert ringed.getpixel(beside) == palette.rgb(palette.INK)
    assert veiled != plain


@every_game
@both_themes
def test_the_drawing_says_what_the_picture_shows(name, theme):
    state = full_board(name)
    root = ElementTree.fromstring(pictures.svg(state, theme))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    for tile in state.cells:
        assert tile == 0 or str(tile) in texts
    assert "1,234,567" in texts
    assert ("next" in texts) == bool(state.hint)
    assert str(state.cells[-1]) in root.find(f"{SVG}title").text
    faces = {box.get("fill") for box in root.iter(f"{SVG}rect")}
    assert {palette.paint(name, index, theme).background for index in state.indices} <= faces


def test_a_bonus_window_shows_all_its_values():
    state = games.get("threes-phone").parse("768 2 3 0 0 0 0 0 0 0 0 0 0 0 0 0 hint=6+12+24")
    texts = [text.text for text in ElementTree.fromstring(pictures.svg(state)).iter(f"{SVG}text")]
    assert texts[-3:] == ["6", "12", "24"]


def test_saving_by_the_name_of_the_file(tmp_path):
    state = games.get("2048").new(1)
    pictures.save(state, tmp_path / "board.png")
    pictures.save(state, tmp_path / "board.svg")
    with Image.open(tmp_path / "board.png") as image:
        assert image.size == (960, 1104)
    assert (tmp_path / "board.svg").read_text().startswith("<svg")
    with pytest.raises(games.InputError, match=r"\.png or \.svg"):
        pictures.save(state, tmp_path / "board.bmp")
    with pytest.raises(games.InputError, match="light or dark"):
        pictures.picture(state, theme="pink")


# --- recorded games -----------------------------------------------------------------------------------------------


@every_game
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_positions_of_a_record_are_those_of_the_game(name, seed):
    record, states = random_game(name, seed)
    moments = moments_of(record)
    assert [moment.state.text for moment in moments] == [state.text for state in states]
    assert [(m.state.score, m.state.moves) for m in moments] == [(s.score, s.moves) for s in states]
    for moment in moments[1:]:
        assert moment.state.indices[moment.new] > 0


def test_a_record_that_cannot_be_played_is_a_mistake():
    start = [Place(0, 1), Place(1, 2)]
    with pytest.raises(games.InputError, match="action 3 of the record: illegal slide"):
        moments_of(Record("2048", [*start, Slide(3)]))
    with pytest.raises(games.InputError, match="action 4 of the record: illegal placement"):
        moments_of(Record("2048", [*start, Slide(2), Place(13, 1)]))
    with pytest.raises(games.InputError, match="stops where a placement must follow"):
        moments_of(Record("2048", start[:1]))


def test_a_film_shows_every_nth_move_and_the_last():
    moments = moments_of(random_game("2048", 1)[0])
    assert film.chosen(moments, 10)[:3] == [0, 10, 20]
    assert film.chosen(moments, 10)[-1] == len(moments) - 1
    assert len(film.chosen(moments * 20, None)) <= film.SHORT + 1
    with pytest.raises(games.InputError, match="--every"):
        film.chosen(moments, 0)
    with pytest.raises(games.InputError, match="too many"):
        film.chosen(moments * 100, 1)


def test_a_gif_holds_the_pictures(tmp_path):
    moments = moments_of(random_game("threes", 2)[0])
    frames = film.save_gif(tmp_path / "game.gif", moments, 5, 10.0, scale=0.5)
    with Image.open(tmp_path / "game.gif") as movie:
        assert movie.n_frames == frames == len(film.chosen(moments, 5))
        assert movie.info["loop"] == 0
        movie.seek(3)
        shown = np.asarray(movie.convert("RGB"), np.int64)
        movie.seek(frames - 1)
        assert movie.info["duration"] == 2500
    assert np.abs(shown - np.asarray(film.frame(moments, 15, scale=0.5, ring=False))).mean() < 2


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg is not here")
def test_a_film_is_written_where_ffmpeg_is_there(tmp_path):
    moments = moments_of(random_game("2048", 2)[0])
    frames = film.save_mp4(tmp_path / "game.mp4", moments, 20, 10.0, scale=0.25)
    assert frames == len(film.chosen(moments, 20)) + 25
    assert (tmp_path / "game.mp4").read_bytes()[4:8] == b"ftyp"
    with pytest.raises(games.InputError, match="could not write"):
        film.save_mp4(tmp_path / "no" / "such" / "folder.mp4", moments, 20, 10.0, scale=0.25)


def test_without_ffmpeg_the_mistake_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    moments = moments_of(random_game("2048", 2)[0])
    with pytest.raises(games.InputError, match="needs the program ffmpeg"):
        film.save_mp4(tmp_path / "game.mp4", moments, 20, 10.0)


# --- the command --------------------------------------------------------------------------------------------------


def test_replay_writes_what_it_is_asked_for(records, tmp_path, capsys):
    paths = {kind: str(tmp_path / f"out.{kind}") for kind in ("gif", "png", "svg")}
    flags = [word for kind, path in paths.items() for word in (f"--{kind}", path)]
    assert cli.main(["replay", str(records), "3", "--every", "20", "--move", "4", *flags]) == 0
    assert "game 3, move 4" in capsys.readouterr().out
    assert all(Path(path).stat().st_size > 1000 for path in paths.values())
    assert "move 4" in Path(paths["svg"]).read_text()


def test_replay_prints_a_line_a_move_when_piped(records, capsys):
    assert cli.main(["replay", str(records), "--number", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(games.get("threes").new(2).text)
    assert len(lines) == len(random_game("threes", 2)[1])


def test_replay_finds_the_best_game(records, capsys, tmp_path):
    scores = [random_game("threes", seed)[1][-1].score for seed in range(1, 6)]
    assert cli.main(["replay", str(records), "--game", "best", "--png", str(tmp_path / "best.png")]) == 0
    assert f"game {1 + int(np.argmax(scores))}," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--game", "6"], "there is no game 6 in"),
        (["0"], "write 1, 2, 3, … or best"),
        (["--fps", "0", "--gif", "x.gif"], "--fps is a number"),
        (["--scale", "nan", "--gif", "x.gif"], "--scale is a number"),
        (["--move", "9999", "--png", "x.png"], "there is no move 9999"),
        (["--gif", "no/such/folder.gif"], "No such file or directory"),
    ],
)
def test_wrong_flags_are_one_line(records, flags, complaint, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["replay", str(records), *flags]) == 2
    error = capsys.readouterr().err.strip()
    assert complaint in error
    assert "\n" not in error


# --- notebooks ----------------------------------------------------------------------------------------------------


def test_a_notebook_draws_positions():
    pytest.importorskip("IPython")
    code = (
        "import tilesage; state = tilesage.game('threes').new(seed=1); "
        "draw = get_ipython().display_formatter.formatters['image/svg+xml']; draw.enabled = True; "  # as in Jupyter
        "print(draw(state)[:4], 'after up' in draw(state.slide('up')))"
    )
    command = [sys.executable, "-m", "IPython", "--no-banner", "--quick", "--colors=nocolor", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split()[-2:] == ["<svg", "True"]


def test_a_notebook_draws_lists_of_positions_side_by_side():
    pytest.importorskip("IPython")
    code = (
        "import sys, tilesage; draw = get_ipython().display_formatter.formatters['text/html']; "
        "draw.enabled = True; "
        "print(draw([1, 2]), draw([]), 'tilesage.games.state' in sys.modules); "  # other lists load nothing
        "state = tilesage.game('threes').new(seed=1); mixed = (state, state.slide('up')); drawn = draw(mixed); "
        "print(drawn.count('<svg'), 'after up' in drawn, draw([state, 1]), '2 more' in draw([state] * 50))"
    )
    command = [sys.executable, "-m", "IPython", "--no-banner", "--quick", "--colors=nocolor", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["None", "None", "False", "2", "True", "None", "True"]


def test_without_a_notebook_nothing_is_loaded():
    code = "import sys, tilesage; print(sorted(name for name in sys.modules if 'drawing' in name or name == 'numba'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


# --- the page -----------------------------------------------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pictures.md"


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, {})
    assert {path.name for path in tmp_path.iterdir()} == {"board.png", "board.svg"}
    assert cli.main(["watch", "--agent", "random", "--game", "2048", "--seed", "3"]) == 0
    assert "\n".join(capsys.readouterr().out.splitlines()[:4]) in PAGE.read_text(encoding="utf-8")


def test_the_pictures_of_the_page_are_there_and_small():
    for name in re.findall(r"\]\((images/.*?)\)", PAGE.read_text(encoding="utf-8")):
        assert 1000 < (PAGE.parent / name).stat().st_size < 300_000
