"""An update rule from outside the package goes the whole way: trained, stopped, resumed, mixed, played, refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilesage.app.web.fields import read
from tilesage.app.web.library import Library
from tilesage.app.web.settings import Settings
from tilesage.app.web.training import TRAINING, Trainings
from tilesage.cli import main
from tilesage.cluster.training import check_settings
from tilesage.core.errors import InputError
from tilesage.learning import Run, TrainConfig, registry, train
from tilesage.learning.config import parse_phases
from tilesage.networks.files import load_model

RULES = Path(__file__).parents[1] / "plugins" / "my_rules.py"
NAME = "my_rules:rmsprop"
SHORT = ["--network", "tiny", "--threads", "1", "--seed", "4", "--quiet", "--block", "5", "--no-average"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with the rules in it, and a process that has not heard of them."""
    shutil.copy(RULES, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "found", {})
    monkeypatch.delitem(sys.modules, "my_rules", raising=False)
    return tmp_path


UPDATE = "def update(w, memory, entries, error, rate):\n    {}\nrule = UpdateRule('x', update)"


def forget(monkeypatch):
    """As in another process."""
    monkeypatch.setattr(registry, "found", {})
    monkeypatch.delitem(sys.modules, "my_rules", raising=False)


def weights_of(run):
    return load_model(Path(run) / "last.safetensors").weights


def test_it_moves_weights_as_written():
    rule = registry.get(NAME)
    assert (rule.name, rule.rate, rule.memory) == (NAME, "10", (100.0,))
    weights, memory = np.zeros(3, np.float32), rule.new_memory(3)
    rule.update(weights, memory, np.array([1], np.uint32), np.float32(20), np.float32(2))
    mean = 0.99 * 100 + 0.01 * 400
    assert memory.tolist() == pytest.approx([100, mean, 100])
    assert weights.tolist() == pytest.approx([0, 2 * 20 / (mean**0.5 + 1e-3), 0])


@pytest.mark.parametrize("way", [[], ["--direction", "backward"], ["--of", "states"], ["--by-age", "--decay", "0.5"]])
def test_it_is_trained_and_plays(capsys, way):
    assert main(["train", "--rule", NAME, "--moves", "20000", *SHORT, *way, "--out", "run"]) == 0
    assert len(np.unique(weights_of("run"))) > 100
    assert main(["evaluate", "run", "--games", "20", "--quiet", "--json", "-"]) == 0
    assert '"games": 20' in capsys.readouterr().out


def test_a_stopped_run_goes_on_to_the_same_weights(monkeypatch, capsys):
    assert main(["train", "--rule", NAME, "--moves", "40000", *SHORT, "--out", "whole"]) == 0
    assert main(["train", "--rule", NAME, "--moves", "15000", *SHORT, "--out", "parts"]) == 0
    forget(monkeypatch)
    resume = ["train", "--resume", "parts", "--moves", "40000", "--quiet"]
    assert main(resume) == 2
    assert f"not known here: if you trust it, add --rule {NAME}" in capsys.readouterr().err
    assert "my_rules" not in sys.modules
    assert main([*resume, "--rule", "my_rules:signs"]) == 2
    assert "parts does not learn by the rule my_rules:signs" in capsys.readouterr().err
    assert main([*resume, "--rule", NAME]) == 0
    np.testing.assert_array_equal(weights_of("parts"), weights_of("whole"))


def test_phases_mix_it_with_others(monkeypatch):
    phases = f"td:0.1:0.25,{NAME}:10>1:0.25,soften:1:0.25,my_rules:signs:2:0.25"
    rules = [(phase.name, phase.rule.name, phase.rate.text) for phase in parse_phases(phases)]
    assert rules[1:3] == [(NAME, NAME, "10>1"), ("soften", NAME, "1")]
    assert main(["train", "--phases", phases, "--moves", "40000", *SHORT, "--out", "whole"]) == 0
    config = TrainConfig.read(Path("whole/run.toml"))
    run = Run.begin(config, Path("parts"))
    run.step()
    assert run.trainer.rule.name == "td"
    while run.done < 0.6:
        run.step()
    assert run.trainer.rule.name == NAME
    assert run.trainer.state()["memory"].shape == weights_of("whole").shape
    run.checkpoint()
    run.close()
    Run.resume(Path("parts")).train()
    np.testing.assert_array_equal(weights_of("parts"), weights_of("whole"))
    assert train(phases=phases, network="tiny", moves=4000, threads=1).progress.moves >= 4000
    with pytest.raises(InputError, match="a soften phase goes on from a tc phase"):
        parse_phases("my_rules:signs:1:0.5,soften:1:0.5")


def test_a_run_that_was_mixed_is_resumed_where_its_rules_are_named(monkeypatch, capsys):
    assert main(["train", "--rule", NAME, "--moves", "5000", *SHORT, "--out", "run"]) == 0
    on = ["train", "--resume", "run", "--moves", "10000", "--quiet", "--phases", "soften:1:0.5,td:0.1:0.5"]
    forget(monkeypatch)
    assert main(on) == 2
    assert main([*on, "--rule", NAME]) == 0
    assert main(["plot", "run", "--out", "run.png"]) == 0


def test_it_is_refused_where_it_cannot_run(capsys):
    assert main(["train", "--rule", NAME, "--moves", "1000", "--device", "cuda", "--out", "run"]) == 2
    assert f"the GPU has no batch rule for {NAME}: leave out --device cuda\n" in capsys.readouterr().err
    with pytest.raises(InputError, match=f"--rule {NAME} is for one machine"):
        check_settings(TrainConfig(rule=NAME, network="tiny"), 2, 1.0)


def test_a_visitor_of_the_page_makes_nothing_be_imported(here):
    trainings = Trainings(Settings(runs=here / "runs"), Library(Settings(runs=here / "runs")))
    assert trainings.choices()["rules"] == ["tc", "td"]
    with pytest.raises(InputError, match="rule"):
        trainings.change(Trainings.start, read(TRAINING, {"name": "mine", "rule": NAME}))
    assert "my_rules" not in sys.modules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rule = 7", "wrong.py: rule is a int, not an UpdateRule"),
        ("rule = nothing", "wrong.py, line 4: NameError: name 'nothing' is not defined"),
        ("rule = UpdateRule('x', 5)", "wrong.py: the update of a rule is a function"),
        ("rule = UpdateRule('x', print, memory=(None,))", "wrong.py: the memory of a rule is a tuple of the numbers"),
        ("rule = UpdateRule('x', print, rate='fast')", "wrong.py: 'fast' is not a rate"),
        ("def f(w, m, entries, error, rate):\n    w[0] += nothing\nrule = UpdateRule('x', f)", "wrong.py, line 5: "),
        (
            "def f(w, m, entries, error, rate):\n    w += error\nrule = UpdateRule('x', f)",
            "wrong.py: the update changes",
        ),
        (
            "def f(w, m, entries, error, rate):\n    w[0] /= 0\nrule = UpdateRule('x', f)",
            "wrong.py: after an error of",
        ),
        ("other = 1", "wrong.py has no 'rule' for the rule wrong:rule"),
    ],
)
def test_what_is_wrong_with_it_is_one_line(here, monkeypatch, text, said):
    monkeypatch.delitem(sys.modules, "wrong", raising=False)
    Path("wrong.py").write_text(f"import numpy as np\nfrom tilesage.learning import UpdateRule\n\n{text}\n")
    with pytest.raises(InputError) as error:
        registry.get("wrong:rule")
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_a_rule_of_no_name_is_unknown():
    with pytest.raises(InputError, match="unknown rule 'adam': write tc, td, or my_module:my_rule"):
        TrainConfig(rule="adam", network="tiny")
    with pytest.raises(InputError, match="there is no module 'nowhere' for the rule nowhere:rule"):
        registry.get("nowhere:rule")


def test_a_package_may_offer_rules(here, monkeypatch):
    """By an entry point, as installed packages have them."""
    about = here / "lab-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lab\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{registry.GROUP}]\nrms = {NAME}\n")
    registry.offered.cache_clear()
    try:
        assert registry.names() == ["tc", "td", "rms"]
        assert main(["train", "--rule", "rms", "--moves", "5000", *SHORT, "--out", "run"]) == 0
        assert main(["train", "--resume", "run", "--moves", "6000", "--quiet"]) == 0
    finally:
        monkeypatch.undo()
        registry.offered.cache_clear()


EDITED = """
from tilesage.learning import train
run = train(recipe="plain", rule="edited:rule", network="tiny", rate="1", moves=2000, threads=1, average=False)
print(run.model.weights.astype("f8").sum())
"""


def test_an_edited_rule_never_meets_stale_machine_code(here):
    """What the loop was compiled with lies on disk; a process after the edit must not take it."""
    text, paths, sums = RULES.read_text() + "\nrule = signs\n", os.pathsep.join([str(here), *sys.path]), []
    quiet = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(here / "cache"), "TILESAGE_QUIET": "1"}
    for step in ("np.sign(error)", "np.sign(error) * 0", "np.sign(error)"):
        Path("edited.py").write_text(text.replace("np.sign(error)", step))
        done = subprocess.run([sys.executable, "-c", EDITED], env=os.environ | quiet, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        sums.append(float(done.stdout))
    assert sums[0] == sums[2] != 0
    assert sums[1] == 0
