"""The command ``grid``."""

import sys
from pathlib import Path

import pytest

from echelon.cli.main import main


def test_a_grid_file_of_wrong_types_is_one_line_and_code_2(folder, capsys, monkeypatch) -> None:
    Path("grid.toml").write_text(
        "data = 'table.csv'\ntarget = 'stars'\n[grid]\nsettings.learning_rate = ['fast']\n"
    )
    arguments = ["echelon", "grid", "grid.toml", "--out", "m", "--dry-run"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        main()
    shown = capsys.readouterr().err
    assert (stopped.value.code, shown.count("\n")) == (2, 1)
    assert "learning_rate must be a number; got 'fast'" in shown
