"""What commands about several runs print."""

import json
from pathlib import Path

from echelon.cli.showing import show_comparison
from echelon.runs import read_runs
from tests.made_runs import write_made_runs


def test_runs_in_words_and_as_one_document(tmp_path: Path, capsys) -> None:
    runs = read_runs(write_made_runs(tmp_path, rows=60, seeds=2))
    show_comparison(runs, tmp_path, as_json=False)
    shown = capsys.readouterr().out
    assert shown.startswith("made up: 1,000 train, 60 test rows\n")
    assert shown.endswith(f"`echelon report {tmp_path}` makes a page of this\n")
    assert "corn" in shown
    show_comparison(runs, tmp_path, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert len(document["runs"]) == len(runs)
