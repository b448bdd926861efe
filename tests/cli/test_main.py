"""The command line as a person uses it: real processes, real files."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from echelon.cli.main import main
from tests.cli.commands import QUICK, run


def test_json_is_one_document(folder: Path) -> None:
    asked = "fit table.csv --target stars --drop grade --out m --json"
    fitted = json.loads(run(*asked.split(), *QUICK))
    assert fitted["classes"] == [1, 2, 3]
    scores = json.loads(run("evaluate", "m", "table.csv", "--target", "stars", "--json"))
    assert set(scores["metrics"]) >= {"mae", "rmse", "ranked_probability_score"}
    assert json.loads(run("predict", "m", "table.csv", "--out", "p", "--json"))["rows"] == 300
    assert json.loads(run("methods", "--json"))[3]["name"] == "corn"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "missing.csv", "--target", "x", "--out", "m"), "there is no file missing.csv"),
        (("fit", "table.csv", "--target", "x", "--out", "m"), "has no column 'x'; it has: a, b"),
        (("fit", "table.csv", "--target", "Star", "--out", "m"), "did you mean 'stars'?"),
        (("fit", "table.csv", "--target", "grade", "--out", "m"), "name them with --classes"),
        (("fit", "table.csv", "--target", "stars", "--out", "no/m"), "folder no does not exist"),
        (
            ("fit", "table.csv", "--target", "stars", "--classes", "a,b", "--out", "m"),
            "must be numbers",
        ),
        (
            ("fit", "table.csv", "--target", "stars", "--method", "corm", "--out", "m"),
            "did you mean 'corn'",
        ),
        (
            ("predict", "table.csv", "table.csv", "--out", "p"),
            "is it a table, in the place of a model?",
        ),
        (("evaluate", "missing", "table.csv", "--target", "stars"), "there is no model missing"),
        (
            ("fit", "table.csv", "--target", "stars", "--decision", "best", "--out", "m"),
            "--decision must be one of median, mean, mode, kappa, or a CSV file",
        ),
        (
            ("fit", "table.csv", "--target", "stars", "--conformal", "1.5", "--out", "m"),
            "held-out shares must lie between 0 and 1",
        ),
        (
            ("fit", "table.csv", "--target", "stars", "--calibrate", "x", "--out", "m"),
            "calibration must be one of 'temperature', 'isotonic'",
        ),
        (("compare", "table.csv", "--out", "m"), "--target is needed"),
        (
            ("compare", "table.csv", "--target", "stars", "--methods", "x", "--out", "m"),
            "got x",
        ),
        (("report", "m"), "m has no finished run"),
        (
            (
                "compare",
                "table.csv",
                "--target",
                "stars",
                "--seeds",
                "9" * 20,
                "--dry-run",
                "--out",
                "m",
            ),
            "seeds must be at least 1 and at most 10,000",
        ),
        (
            ("compare", "table.csv", "--target", "stars", "--splits", "9" * 20, "--out", "m"),
            "splits must be at least 1 and at most 1,000",
        ),
        (
            ("compare", "table.csv", "--target", "stars", "--device", "tpu", "--out", "m"),
            "device must be auto, cpu, cuda, mps",
        ),
        (
            ("fit", "table.csv", "--target", "stars", "--device", "tpu", "--out", "m"),
            "got 'tpu': try auto",
        ),
        (
            ("fit", "table.csv", "--target", "stars", "--devices", "9" * 9, "--out", "m"),
            "--devices must be from 1 to 64",
        ),
        (
            ("fit", "table.csv", "--target", "stars", "--max-epochs", "9" * 20, "--out", "m"),
            "max_epochs must be at most 1,000,000",
        ),
        (("fit", "table.csv", "--target", "stars", "--seed", "x", "--out", "m"), "fit --help`"),
        (("fit", "table.csv", "--targe\x1bt"), r"--targe\x1bt"),
    ],
)
def test_wrong_input_is_one_line_and_code_2(
    folder: Path, capsys, monkeypatch: pytest.MonkeyPatch, arguments, message: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["echelon", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert not Path("m").exists()
    assert not Path("p").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("fit", "twice.csv", "--target", "stars", "--out", "m"),
            "twice.csv, line 1: every column",
        ),
        (("fit", "ragged.csv", "--target", "stars", "--out", "m"), "and line 3 has 3"),
        (("fit", "empty.parquet", "--target", "stars", "--out", "m"), "has columns but no rows"),
        (
            ("fit", "struct.parquet", "--target", "stars", "--out", "m"),
            "column 'odd' holds structs, and an argument must be a string or a number; drop the "
            "column (--drop on the command line)",
        ),
        (
            ("fit", "flags.csv", "--target", "ok", "--classes", "banana,true", "--out", "m"),
            "--classes must be true and false, as the column 'ok' is; got banana, true",
        ),
        (
            ("fit", "table.csv", "--target", "stars", "--image-folder", ".", "--out", "m"),
            "--image-folder says where the images of a column are, and none was named",
        ),
        (
            ("fit", "weights.csv", "--target", "stars", "--weight", "a", "--out", "m"),
            "weights must be numbers",
        ),
    ],
)
def test_wrong_tables_are_one_line_and_code_2(
    folder: Path, capsys, monkeypatch: pytest.MonkeyPatch, arguments, message: str
) -> None:
    Path("twice.csv").write_text("a,stars,stars\n1,1,1\n2,2,2\n")
    Path("ragged.csv").write_text("a,stars\n1,1\n2,2,2\n")
    Path("weights.csv").write_text("a,b,stars\nx,1,1\n2,2,2\n")
    Path("flags.csv").write_text("a,ok\n1,true\n2,false\n")
    rows = pd.DataFrame({"odd": [{"x": 1}, {"x": 2}], "stars": [1, 2]})
    rows.to_parquet("struct.parquet")
    rows.head(0).to_parquet("empty.parquet")
    test_wrong_input_is_one_line_and_code_2(folder, capsys, monkeypatch, arguments, message)


def test_the_program_itself(folder: Path) -> None:
    program = Path(sys.executable).with_name("echelon")
    done = subprocess.run([program, "fit"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    done = subprocess.run([program, "fit", "--help"], capture_output=True, text=True, check=True)
    assert "Example: echelon fit" in done.stdout
    done = subprocess.run(
        [program, "predict", "table.csv", "x", "--out", "p"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_fault_of_the_program_is_one_line(folder, capsys, monkeypatch) -> None:
    def fail(*_, **__):
        raise KeyError("surprise")

    monkeypatch.setattr("echelon.report.write_page", fail)
    monkeypatch.setattr(sys, "argv", ["echelon", "report", "."])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == (
        "echelon: a fault of echelon itself (KeyError: 'surprise'); ECHELON_TRACEBACK=1 shows "
        "where it arose\n"
    )
    monkeypatch.setenv("ECHELON_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main()


def test_labels_and_headers_cannot_drive_the_terminal(folder, capsys, monkeypatch) -> None:
    table = pd.read_csv("table.csv")
    table["stars\x1b]0;owned\x07"] = table["stars"].map({1: "a\x1b[2J", 2: "b[red]", 3: "c\u202e"})
    table.drop(columns=["grade", "stars"]).to_csv("odd.csv", index=False)
    target = "stars\x1b]0;owned\x07"
    fit = ("fit", "odd.csv", "--target", target, "--classes", "a\x1b[2J,b[red],c\u202e")
    for arguments, code in (
        ((*fit, "--out", "m", *QUICK), 0),
        (("fit", "odd.csv", "--target", "no\x1b[1m", "--out", "n"), 2),
        (("evaluate", "m", "odd.csv", "--target", target), 0),
    ):
        monkeypatch.setattr(sys, "argv", ["echelon", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == code
        shown = capsys.readouterr()
        # the progress bar draws; nothing in it is from the file
        heard = shown.out + "".join(line for line in shown.err.splitlines() if "/" not in line)
        assert not set(heard) & {"\x1b", "\x07", "\u202e"}, heard
        if "m" in arguments and "fit" in arguments:
            assert r"a\x1b[2J, b[red], c\u202e" in shown.out
