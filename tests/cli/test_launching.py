"""Where the work of a command runs."""

import json
import sys
from pathlib import Path

import pytest
import typer

from echelon.cli import launching
from tests.cli.commands import run


@pytest.mark.parametrize("devices", [None, 1])
def test_one_device_starts_nothing(monkeypatch: pytest.MonkeyPatch, devices) -> None:
    monkeypatch.setattr(launching, "_run_together", lambda *_: pytest.fail("started"))
    launching.share_devices(devices)


@pytest.mark.parametrize("devices", [0, -1, 65])
def test_as_many_devices_as_a_machine_has(devices: int) -> None:
    with pytest.raises(ValueError, match="--devices must be from 1 to 64"):
        launching.share_devices(devices)


def test_several_devices_end_as_their_processes_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "_run_together", lambda command, count: 10 * count)
    with pytest.raises(typer.Exit) as stopped:
        launching.share_devices(2)
    assert stopped.value.exit_code == 20


_LATE = """
import os, signal, sys, time
def end(*_):
    print("echelon: wrong", file=sys.stderr)
    sys.exit(2)
signal.signal(signal.SIGTERM, end)
time.sleep(0 if os.environ["RANK"] == "1" else 60)
end()
"""


def test_a_first_process_that_is_late_is_the_only_one_heard(monkeypatch, capfd) -> None:
    monkeypatch.setattr(launching, "_GRACE_SECONDS", 1.5)
    assert launching._run_together([sys.executable, "-c", _LATE], 2) == 2
    assert capfd.readouterr().err == "echelon: wrong\n"


def test_an_interruption_says_that_nothing_is_lost(capsys) -> None:
    with pytest.raises(typer.Exit) as stopped, launching.going_on():
        raise KeyboardInterrupt
    assert stopped.value.exit_code == 130
    assert "finished runs are kept" in capsys.readouterr().err


def test_a_dry_run_says_how_long_it_takes(folder: Path) -> None:
    shown = run(
        "compare", "table.csv", "--target", "stars", "--drop", "grade", "--methods", "ce",
        "--seeds", "1", "--backbone", "linear", "--max-epochs", "1", "--device", "cpu",
        "--dry-run", "--json", "--out", "runs",
    )  # fmt: skip
    assert json.loads(shown)["runs"] == 3
    assert not Path("runs").exists()
