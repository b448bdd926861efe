"""The programs in examples/: each is short, says what it is, and runs to its end."""

import os
import runpy
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
# Those that are short programs; the demo has a command of its own, and takes a minute.
PROGRAMS = {path.stem: path for path in FOLDER.glob("*.py")}
LONG = {"demo", "friedman"}
# What each of the others must have printed, so that it did what it says.
SAID = {
    "own_table": "quadratic weighted kappa 0.",
    "kappa_contest": "submission.csv: 200 rows, kappa 0.",
    "odds_ratios": "proportional odds",
    "texts": "mean absolute error 0.",
    "images": "mean absolute error 0.",
    "pytorch_loop": "corn: mean absolute error 0.",
    "lightning_module": "kappa on validation rows: 0.",
    "transformers_trainer": "quadratic weighted kappa ",
    "skorch_net": "mean absolute error 0.",
    "serving_client": "probabilities",
}
# Those that need other libraries, or a process of their own; tests/slow/test_examples.py runs them.
SLOW = {"texts", "images", "lightning_module", "transformers_trainer", "serving_client"}


def run(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a program in a folder where it may write, and look at what it said."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other libraries, about loaders and workers
            runpy.run_path(str(PROGRAMS[name]), run_name="__main__")
    finally:
        os.chdir(before)
    assert SAID[name] in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(set(SAID) - SLOW))
def test_an_example_runs(name: str, tmp_path: Path, capsys) -> None:
    run(name, tmp_path, capsys)


def test_every_example_is_run_and_is_short() -> None:
    assert set(PROGRAMS) == set(SAID) | LONG
    for name in SAID:
        lines = PROGRAMS[name].read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 80, name
        assert lines[0].startswith('"""')
