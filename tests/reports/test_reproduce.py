"""Experiments: steps that run once, go on after an interruption, and pages that say where their figures come from."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tilesage.cli import main
from tilesage.cli.flags import parse
from tilesage.core.errors import InputError
from tilesage.reports import find_report, names
from tilesage.reports.page import Reported, duration, how_it_was_made, side_by_side, verdict
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Done, Experiment, Step

STEPS = (
    Step(
        "play",
        ("evaluate", "--agent", "random", "--games", "40", "--workers", "1", "--save", "{run}/games.txt"),
        "games.txt",
    ),
    Step("judge", ("referee", "{run}/games.txt")),
)


def experiment_in(folder: Path, run: object = main, **more: object) -> Experiment:
    return Experiment(folder, run, lambda text: None, **more)  # type: ignore[arg-type]


class TestSteps:
    def test_run_once_and_say_where_from(self, tmp_path: Path) -> None:
        calls: list[Sequence[str]] = []

        def counted(words: Sequence[str]) -> int:
            calls.append(words)
            return main(words)

        first = experiment_in(tmp_path / "x", counted, commit="abc")
        first.perform(STEPS)
        assert [call[0] for call in calls] == ["evaluate", "referee"]
        done = first.done["play"]
        assert done.figures["games"] == 40
        assert done.command.startswith("tilesage evaluate --agent random")
        assert "--save runs/x/games.txt" in done.command
        assert done.commit == "abc"
        assert "cores" in done.machine
        again = experiment_in(tmp_path / "x", counted)
        again.perform(STEPS)
        assert len(calls) == 2
        assert again.done == first.done

    def test_an_interrupted_step_is_done_again(self, tmp_path: Path) -> None:
        stopped = experiment_in(tmp_path, lambda words: 130)
        with pytest.raises(KeyboardInterrupt):
            stopped.perform(STEPS)
        assert stopped.done == {}
        (tmp_path / "games.txt").write_text("half a line")
        later = experiment_in(tmp_path)
        later.perform(STEPS)
        assert later.done["judge"].figures["ok"] is True

    def test_an_interrupted_training_is_resumed(self, tmp_path: Path) -> None:
        calls: list[list[str]] = []

        def train(words: Sequence[str]) -> int:
            calls.append(list(words))
            (tmp_path / "learn").mkdir(exist_ok=True)
            if len(calls) == 1:
                return 130
            Path(words[-1]).write_text('{"games": 5}')
            return 0

        steps = [Step("learn", ("train", "2048", "--games", "5", "--out", "{run}/learn"), "learn")]
        with pytest.raises(KeyboardInterrupt):
            experiment_in(tmp_path, train).perform(steps)
        done = experiment_in(tmp_path, train)
        done.perform(steps)
        assert calls[1][:3] == ["train", "--resume", str(tmp_path / "learn")]
        assert "--resume" not in done.done["learn"].command

    def test_other_machines_count_other_settings_do_not(self, tmp_path: Path) -> None:
        experiment_in(tmp_path).perform(STEPS[:1])
        elsewhere = Step("play", (*STEPS[0].words[:6], "7", *STEPS[0].words[7:]))
        assert elsewhere.words[5:7] == ("--workers", "7")
        looking = experiment_in(tmp_path)
        looking.look([elsewhere])
        assert "play" in looking.done
        looking.look([Step("play", (*STEPS[0].words[:4], "41", *STEPS[0].words[5:]))])
        assert looking.done == {}

    def test_a_failing_step_stops_the_experiment(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="step play ended with status 2"):
            experiment_in(tmp_path, lambda words: 2).perform(STEPS)

    def test_damaged_figures_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "play.json").write_text("{")
        with pytest.raises(InputError, match=r"play\.json does not hold"):
            experiment_in(tmp_path).look(STEPS)

    def test_slimming_keeps_the_curve(self, tmp_path: Path) -> None:
        (tmp_path / "learn").mkdir()
        (tmp_path / "learn" / "metrics.jsonl").write_text("{}\n")
        (tmp_path / "learn" / "last.safetensors").write_bytes(bytes(3 << 20))
        step = Step("play", STEPS[0].words, "games.txt", slims="learn")
        experiment_in(tmp_path).perform([step])
        assert (tmp_path / "learn" / "last.safetensors").exists()
        (tmp_path / "play.json").unlink()
        experiment_in(tmp_path, slimming=True).perform([step])
        assert [path.name for path in (tmp_path / "learn").iterdir()] == ["metrics.jsonl"]


def done_with(**figures: object) -> Done:
    return Done("tilesage evaluate", figures, 61, "abc", "a machine", "2026-01-01")


def test_figures_stand_side_by_side() -> None:
    ours = done_with(
        mean=1234.5,
        stderr=10.2,
        games=100,
        max=5000,
        moves=9000,
        tiles={"1024": {"end": 0.25}, "2048": {"end": 0.75}},
    )
    text = side_by_side(
        Reported(999, None, {2048: 50}, {2048: 50}, moves=80), {"ours": ours, "states": None}, (1024, 2048)
    )
    assert "| mean score | 999 | **1,234** ± 10 |" in text
    assert "| moves a game | 80 | 90 |" in text
    assert "| 1024 |  | 100.0 % (25.0 %) |" in text
    assert "| 2048 | 50.0 % (50.0 %) | 75.0 % (75.0 %) |" in text
    assert "Not run: states." in text


def test_faults_are_not_hidden() -> None:
    faulty = done_with(ok=False, fault={"line": 3, "action": 7, "reason": "illegal"}, fairness=[], games=9)
    assert "illegal" in verdict(faulty)
    assert "unfair chance" in verdict(done_with(ok=False, fault=None, fairness=[], games=9))
    assert "not judged" in verdict(None)


def test_times_and_origins() -> None:
    assert [duration(seconds) for seconds in (0.2, 59.4, 61, 3600)] == ["0 s", "59 s", "1 min 1 s", "1 h 0 min"]
    text = how_it_was_made({"play": replace(done_with(), command="tilesage evaluate --seed 3")})
    assert "| play | 2026-01-01 | `abc` | a machine | 3 | 1 min 1 s |" in text
    assert done_with(seconds=90.5).whole_time == 90.5  # a resumed training: longer than its last part


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("scale", [Scale("quick"), Scale("full", "cuda", 16)])
def test_every_step_is_a_command(name: str, scale: Scale, tmp_path: Path) -> None:
    steps = find_report(name).steps(scale)
    assert len({step.name for step in steps}) == len(steps) > 1
    for step in steps:
        command = importlib.import_module(f"tilesage.cli.{step.words[0]}").Command
        assert parse(command, step.words[0], [*step.in_folder(tmp_path)[1:], "--json", "x"]).json == "x"


@pytest.mark.parametrize("name", names())
def test_pages_without_figures_say_so(name: str, tmp_path: Path) -> None:
    page = find_report(name).page(experiment_in(tmp_path), Scale(), tmp_path)
    assert page.startswith(f"# {name}: ")
    assert "Nothing has been run yet." in page
    assert "not run" in page.lower()


def run_report(report: Report, scale: Scale, folder: Path) -> str:
    experiment = experiment_in(folder)
    experiment.perform(report.steps(scale))
    return report.page(experiment, scale, folder)


def test_d4_from_training_to_points(tmp_path: Path) -> None:
    page = run_report(find_report("D4"), Scale("tiny", threads=1), tmp_path)
    assert "| mean score | 83,538 | **" in page
    assert "every action legal" in page
    assert "Points: **" in page
    assert "actions/s** on one core; reported: 559,798" in page
    assert {path.name for path in tmp_path.glob("*.png")} == {"D4-curve.png", "D4-tiles.png"}
    assert "(D4-curve.png)" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", ["D0", "D1", "D2", "D3"])
def test_the_others_from_end_to_end(name: str, tmp_path: Path) -> None:
    page = run_report(find_report(name), Scale("tiny", threads=1), tmp_path)
    assert "not run" not in page.lower()
    for picture in tmp_path.glob("*.png"):
        assert f"({picture.name})" in page


class TestCommand:
    def test_list_and_write(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        where = ["--out", str(tmp_path / "D1")]
        assert main(["reproduce", "d1", *where, "--list"]) == 0
        assert "missing limits: tilesage evaluate --agent mcts:d1 --games 4" in capsys.readouterr().out
        assert (
            main(
                [
                    "reproduce",
                    "D1",
                    *where,
                    "--write",
                    "--json",
                    str(tmp_path / "j"),
                    "--page",
                    str(tmp_path / "p.md"),
                ]
            )
            == 0
        )
        assert "0 of 4 steps are done" in capsys.readouterr().out
        assert json.loads((tmp_path / "j").read_text()) == {}
        assert (tmp_path / "p.md").read_text().startswith("# D1: 2048, Monte Carlo tree search")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["D9"], "no report 'D9': write one of D0, D1"),
            (["D1", "--only", "nothing"], "no step begins with 'nothing'"),
            (["D1", "--threads", "0"], "--threads"),
            (["D2", "--watch"], "--watch goes with D1"),
            (["D1", "--scale", "huge"], "--help lists the flags"),
        ],
    )
    def test_mistakes(
        self,
        words: list[str],
        message: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert main(["reproduce", *words]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert list(tmp_path.iterdir()) == []
