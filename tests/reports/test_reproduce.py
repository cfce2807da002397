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
from tilesage.reports import NAMES, find_report
from tilesage.reports.cells import Cell, Figure, cells_of, judged_tests, share_error, together
from tilesage.reports.page import all_cells, duration, how_it_was_made, page_of, verdict
from tilesage.reports.report import Report, Scale
from tilesage.reports.steps import Done, Experiment, Step, kept, read_row

PLAY = Step(
    "x-1",
    "test",
    ("evaluate", "--agent", "random", "--games", "40", "--workers", "1", "--save", "{run}/x-1.txt"),
    "x-1.txt",
)
STEPS = (PLAY, Step("x-1", "judge", ("referee", "{run}/x-1.txt")))
LEARN = Step("x-1", "learn", ("train", "2048", "--games", "5", "--out", "{run}/x-1"), "x-1")


def experiment_in(folder: Path, run: object = main, **more: object) -> Experiment:
    return Experiment(folder, folder / "data", run, lambda text: None, **more)  # type: ignore[arg-type]


class TestSteps:
    def test_run_once_and_say_where_from(self, tmp_path: Path) -> None:
        calls: list[Sequence[str]] = []

        def counted(words: Sequence[str]) -> int:
            calls.append(words)
            return main(words)

        first = experiment_in(tmp_path / "x", counted, commit="abc")
        first.perform(STEPS)
        assert [call[0] for call in calls] == ["evaluate", "referee"]
        done = first.done["x-1.test"]
        assert done.figures["games"] == 40
        assert sum(done.figures["ends"].values()) == pytest.approx(1)
        assert done.command.startswith("tilesage evaluate --agent random")
        assert "--save runs/x/x-1.txt" in done.command
        assert done.commit == "abc"
        assert "cores" in done.machine
        again = experiment_in(tmp_path / "x", counted)
        again.perform(STEPS)
        assert len(calls) == 2
        assert again.done == first.done

    def test_a_row_is_one_small_file_from_which_others_go_on(self, tmp_path: Path) -> None:
        experiment_in(tmp_path / "here").perform(STEPS)
        file = tmp_path / "here" / "data" / "x-1.json"
        assert set(read_row(file)) == {"test", "judge"}
        assert file.stat().st_size < 4000
        (tmp_path / "there" / "data").mkdir(parents=True)
        file.rename(tmp_path / "there" / "data" / "x-1.json")
        there = experiment_in(tmp_path / "there", lambda words: 2)
        there.command = experiment_in(tmp_path / "here").command  # type: ignore[method-assign]  # the same runs/NAME
        there.perform(STEPS)
        assert set(there.done) == {"x-1.test", "x-1.judge"}

    def test_an_interrupted_step_is_done_again(self, tmp_path: Path) -> None:
        stopped = experiment_in(tmp_path, lambda words: 130)
        with pytest.raises(KeyboardInterrupt):
            stopped.perform(STEPS)
        assert stopped.done == {}
        (tmp_path / "x-1.txt").write_text("half a line")
        later = experiment_in(tmp_path)
        later.perform(STEPS)
        assert later.done["x-1.judge"].figures["ok"] is True

    def test_an_interrupted_training_is_resumed_and_its_curve_is_kept(self, tmp_path: Path) -> None:
        calls: list[list[str]] = []

        def train(words: Sequence[str]) -> int:
            calls.append(list(words))
            if len(calls) == 1:
                run = tmp_path / "x-1"
                run.mkdir()
                (run / "last.safetensors").write_bytes(b"")
                same = {"reach": {"64": 0.5}, "error": 1}
                same |= {"block": 10, "moves": 9, "seconds": 1, "moves_per_second": 9}
                lines = [{"games": 10 * k, "mean": k, "max": 9 * k} | same for k in range(1, 251)]
                (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
                return 130
            Path(words[-1]).write_text('{"games": 5}')
            return 0

        with pytest.raises(KeyboardInterrupt):
            experiment_in(tmp_path, train).perform([LEARN])
        done = experiment_in(tmp_path, train)
        done.perform([LEARN])
        assert calls[1][:3] == ["train", "--resume", str(tmp_path / "x-1")]
        assert "--resume" not in done.done["x-1.learn"].command
        curve = done.done["x-1.learn"].figures["curve"]
        assert curve[0] == {"games": 30, "mean": 2, "max": 27, "reach": {"64": 0.5}}
        assert (len(curve), curve[-1]["games"]) == (84, 2500)

    def test_what_is_gone_is_made_again(self, tmp_path: Path) -> None:
        """A learnt network whose weights were removed, before a test that still has to be run."""
        calls: list[str] = []

        def run(words: Sequence[str]) -> int:
            calls.append(words[0])
            if words[0] == "train":
                (tmp_path / "x-1").mkdir()
                (tmp_path / "x-1" / "last.safetensors").write_bytes(b"x")
                (tmp_path / "x-1" / "metrics.jsonl").write_text("")
            Path(words[-1]).write_text('{"games": 5}')
            return 0

        test = Step("x-1", "test", ("evaluate", "{run}/x-1/last.safetensors"))
        experiment = experiment_in(tmp_path, run, slimming=True)
        experiment.perform([LEARN, test])
        assert calls == ["train", "evaluate"]
        assert [path.name for path in (tmp_path / "x-1").iterdir()] == ["metrics.jsonl"]  # slimmed: the curve stays
        experiment.perform([LEARN, test, Step("x-1", "judge", ("referee", "{run}/x-1/last.safetensors"))])
        assert calls == ["train", "evaluate", "train", "referee"]

    def test_other_machines_count_other_settings_do_not(self, tmp_path: Path) -> None:
        experiment_in(tmp_path).perform(STEPS[:1])
        elsewhere = replace(PLAY, words=(*PLAY.words[:6], "7", *PLAY.words[7:]))
        assert elsewhere.words[5:7] == ("--workers", "7")
        looking = experiment_in(tmp_path)
        looking.look([elsewhere])
        assert "x-1.test" in looking.done
        looking.look([replace(PLAY, words=(*PLAY.words[:4], "41", *PLAY.words[5:]))])
        assert looking.done == {}

    def test_a_failing_step_stops_the_experiment(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"step x-1\.test ended with status 2"):
            experiment_in(tmp_path, lambda words: 2).perform(STEPS)

    def test_damaged_figures_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "x-1.json").write_text("{")
        with pytest.raises(InputError, match=r"x-1\.json does not hold"):
            experiment_in(tmp_path).look(STEPS)


def done_with(**figures: object) -> Done:
    return Done("tilesage evaluate", figures, 61, "abc", "a machine", "2026-01-01")


class TestVerdicts:
    @pytest.mark.parametrize(
        ("reported", "ours", "expected"),
        [
            (Figure(93.2, 0.8), Figure(93.16, 0.8), "met"),  # as far as the reported digits go
            (Figure(93.2, 0.8), Figure(93.1, 0.8), "level"),
            (Figure(93.2, 0.8), Figure(90.94, 0.8), "level"),  # two errors of the difference are 2.263
            (Figure(93.2, 0.8), Figure(90.93, 0.8), "below"),
            (Figure(93.2, 0.8), None, ""),
        ],
    )
    def test_by_two_errors_of_the_difference(self, reported: Figure, ours: Figure | None, expected: str) -> None:
        assert Cell("384", reported, ours, 1).verdict == expected

    def test_errors_of_shares_are_never_nothing(self) -> None:
        assert share_error(50, 100) == pytest.approx(5)
        assert share_error(100, 1000) == pytest.approx(share_error(0, 1000))
        assert 0 < share_error(0, 1000) < 0.11

    def test_seeds_are_judged_by_their_mean_and_spread(self) -> None:
        both = together([Figure(10, 3), Figure(20, 4)])
        assert both == Figure(15, 2.5)
        several = together([Figure(10), Figure(20), Figure(60)])
        assert several
        assert several.value == 30
        assert several.error == pytest.approx((700 / 3) ** 0.5)
        assert together([]) is None

    def test_of_repeated_tests_the_best_by_its_tile_is_judged(self) -> None:
        report = find_report("D2")
        tests = [
            done_with(mean=mean, stderr=1.0, games=1000, max=9, moves=9, ends={"1024": 1 - share, "2048": share})
            for mean, share in ((100.0, 0.5), (50.0, 0.6), (40.0, 0.6))
        ]
        names = ("test", "test2", "test3")
        done = {f"group0-0.1-1.{name}": test for name, test in zip(names, tests)}
        assert judged_tests(report, "group0-0.1", done) == [tests[1]]
        cells = {cell.name: cell for cell in cells_of(report, "group0-0.1", done)}
        assert cells["2048"].ours
        assert cells["2048"].ours.value == pytest.approx(60)
        assert (cells["64"].verdict, cells["2048"].verdict) == ("met", "below")

    def test_every_reported_figure_is_a_cell(self) -> None:
        page = all_cells([(find_report(name), {}) for name in NAMES])
        cells = sum(1 + len(find_report(name).data["reported"]["reach"]) for name in NAMES) + 7 * 2
        assert f"All: {cells} not run." in page
        assert page.count("| not run | not run |") == cells


def test_faults_are_not_hidden() -> None:
    faulty = done_with(ok=False, fault={"line": 3, "action": 7, "reason": "illegal"}, fairness=[], games=9)
    assert "illegal" in verdict("x", faulty)
    assert "unfair chance" in verdict("x", done_with(ok=False, fairness=[], games=9))


def test_figures_are_kept_small() -> None:
    found = kept({"games": 5, "run": "x", "tiles": {"2": {"reach": 1, "end": 0.0}, "4": {"reach": 1, "end": 1.0}}})
    assert found == {"games": 5, "ends": {"4": 1.0}}


def test_times_and_origins() -> None:
    assert [duration(seconds) for seconds in (0.2, 59.4, 61, 3600)] == ["0 s", "59 s", "1 min 1 s", "1 h 0 min"]
    again = replace(done_with(), command="tilesage evaluate --seed 3")
    text = how_it_was_made({"x-1.test": done_with(), "x-1.test2": again, "x-2.test": again})
    assert "| x-1 | 2026-01-01 | `abc` | a machine | 2 min 2 s |" in text
    assert "All of it: 3 min 3 s." in text
    assert text.endswith("```\ntilesage evaluate\n```")
    assert done_with(seconds=90.5).whole_time == 90.5  # a resumed training: longer than its last part


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [Scale("quick"), Scale("full", 16, cuda=True)])
def test_every_step_is_a_command(name: str, scale: Scale, tmp_path: Path) -> None:
    steps = find_report(name).steps(scale)
    assert len({step.name for step in steps}) == len(steps) > 1
    for step in steps:
        command = importlib.import_module(f"tilesage.cli.{step.words[0]}").Command
        assert parse(command, step.words[0], [*step.in_folder(tmp_path)[1:], "--json", "x"]).json == "x"


@pytest.mark.parametrize("name", NAMES)
def test_pages_without_figures_say_so(name: str, tmp_path: Path) -> None:
    page = page_of(find_report(name), experiment_in(tmp_path), Scale(), tmp_path)
    assert page.startswith(f"# {name}: ")
    assert "Nothing has been run yet." in page
    assert "not run" in page.lower()


def run_report(report: Report, scale: Scale, folder: Path) -> str:
    experiment = experiment_in(folder)
    experiment.perform(report.steps(scale))
    return page_of(report, experiment, scale, folder)


def test_d4_from_training_to_points(tmp_path: Path) -> None:
    page = run_report(find_report("D4"), Scale("tiny", 1), tmp_path)
    assert "| mean score | 83,538 | **" in page
    assert "every action legal" in page
    assert {path.name for path in tmp_path.glob("*.png")} == {"D4-curve.png", "D4-tiles.png"}
    assert "(D4-curve.png)" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", ["D0", "D1", "D2", "D3"])
def test_the_others_from_end_to_end(name: str, tmp_path: Path) -> None:
    page = run_report(find_report(name), Scale("tiny", 1), tmp_path)
    assert "not run" not in page.lower()
    for picture in tmp_path.glob("*.png"):
        assert f"({picture.name})" in page


class TestCommand:
    def test_list_and_write(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        where = ["--out", str(tmp_path / "D1")]
        assert main(["reproduce", "d1", *where, "--list"]) == 0
        assert (
            "to do code-1.test: tilesage evaluate --agent mcts:d1 --games 6 --until 2048" in capsys.readouterr().out
        )
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
        assert "0 of 11 steps are done" in capsys.readouterr().out
        assert json.loads((tmp_path / "j").read_text()) == {}
        assert (tmp_path / "p.md").read_text().startswith("# D1: 2048, Monte Carlo tree search")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["D9"], "no report 'D9': write one of D0, D1"),
            (["D1", "--only", "nothing"], "no step begins with 'nothing'"),
            (["D1", "--threads", "0"], "--threads"),
            (["D2", "--watch"], "--watch goes with D1"),
            (["all", "--only", "4x6"], "leave out"),
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
