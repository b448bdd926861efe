"""The command line as a person uses it: real processes, real files."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import echelon
from echelon.cli.main import app, main
from echelon.data import make_friedman
from echelon.runs import read_run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = make_friedman(300, num_classes=3)
    table = pd.DataFrame(data.features[:, :5], columns=list("abcde"))
    table["kind"] = np.where(table["c"] > 0.5, "big", "small")
    table["grade"] = np.array(["lo", "mid", "hi"])[data.ranks]
    table["stars"] = data.ranks + 1
    table["weight"] = 1.0
    table.to_csv(tmp_path / "table.csv", index=False)
    table.to_parquet(tmp_path / "table.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> str:
    """Run a command in this process, as the program would."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


QUICK = ("--max-epochs", "2", "--device", "cpu")


def test_fit_evaluate_predict(folder: Path) -> None:
    run(
        "fit", "table.csv", "--target", "grade", "--classes", "lo,mid,hi", "--drop", "stars",
        "--weight", "weight", "--out", "model.echelon", *QUICK,
    )  # fmt: skip
    shown = run("evaluate", "model.echelon", "table.csv", "--target", "grade", "--out", "run")
    assert "mae" in shown
    assert read_run("run").predictions["probabilities"].shape == (300, 3)
    run("export", "model.echelon", "--onnx", "model.onnx")
    assert Path("model.onnx").stat().st_size > 1000
    for name in ("table.csv", "table.parquet"):
        run("predict", "model.echelon", name, "--out", "p.csv")
        predictions = pd.read_csv("p.csv")
        assert list(predictions) == [
            "prediction", "probability_lo", "probability_mid", "probability_hi",
        ]  # fmt: skip
        np.testing.assert_allclose(predictions.iloc[:, 1:].sum(axis=1), 1, atol=1e-4)
    assert not list(folder.glob(".*partial"))


def test_json_is_one_document(folder: Path) -> None:
    asked = "fit table.csv --target stars --drop grade --out m --json"
    fitted = json.loads(run(*asked.split(), *QUICK))
    assert fitted["classes"] == [1, 2, 3]
    scores = json.loads(run("evaluate", "m", "table.csv", "--target", "stars", "--json"))
    assert set(scores["metrics"]) >= {"mae", "rmse", "ranked_probability_score"}
    assert json.loads(run("predict", "m", "table.csv", "--out", "p", "--json"))["rows"] == 300
    assert json.loads(run("methods", "--json"))[3]["name"] == "corn"


def test_decisions_calibration_and_intervals(folder: Path) -> None:
    asked = "fit table.csv --target stars --drop grade --out m --json --conformal 0.2"
    asked += " --calibrate temperature --decision kappa"
    fitted = json.loads(run(*asked.split(), *QUICK))
    assert fitted["held_out"]["conformal"] == pytest.approx(60, abs=3)
    assert set(fitted["calibration"]) == {"before", "after"}
    run("predict", "m", "table.csv", "--out", "p.csv")
    found = pd.read_csv("p.csv")
    assert list(found)[:3] == ["prediction", "lower", "upper"]
    assert (found["lower"] <= found["upper"]).all()
    run("predict", "m", "table.csv", "--out", "q.csv", "--coverage", "0.5")
    assert (pd.read_csv("q.csv")["upper"] <= found["upper"]).all()
    Path("costs.csv").write_text("0,1,2\n9,0,1\n99,9,0\n")
    run("predict", "m", "table.csv", "--out", "c.csv", "--decision", "costs.csv")
    assert (pd.read_csv("c.csv")["prediction"] == 3).mean() > 0.5  # missing a 3 is dear
    run("evaluate", "m", "table.csv", "--target", "stars", "--decision", "mode", "--out", "run")
    assert "conformal_scores" in read_run("run").predictions


def test_held_out_rows_keep_their_weights(folder: Path) -> None:
    table = pd.read_csv("table.csv").drop(columns="grade")
    table["weight"] = np.where(table["stars"] == 3, 50.0, 1.0)
    table.to_csv("weighted.csv", index=False)
    asked = "fit weighted.csv --target stars --conformal 0.2 --calibrate isotonic --out"
    run(*asked.split(), "weighted", "--weight", "weight", *QUICK)
    run(*asked.split(), "plain", "--drop", "weight", *QUICK)
    weighted, plain = echelon.load("weighted"), echelon.load("plain")
    np.testing.assert_array_equal(weighted.conformal_.ranks, plain.conformal_.ranks)
    np.testing.assert_array_equal(
        weighted.conformal_.weight, np.where(weighted.conformal_.ranks == 2, 50.0, 1.0)
    )
    # the highest class has nearly all of the weight, and a third of the rows
    shares = [model.predict_proba(table)[:, 2].mean() for model in (weighted, plain)]
    assert shares[0] > shares[1] + 0.05


def test_a_class_among_the_held_out_rows_alone_is_a_class(folder: Path) -> None:
    table = pd.read_csv("table.csv")[["a", "b", "c", "stars"]].iloc[:40]
    table["stars"] = [9 if row == 0 else 1 + row % 2 for row in range(40)]
    table.to_csv("rare.csv", index=False)
    for seed in range(6):  # some of them hold the one row of class 9 out
        arguments = ("--conformal", "0.5", "--seed", str(seed), "--json", *QUICK)
        shown = run("fit", "rare.csv", "--target", "stars", "--out", "m", *arguments)
        assert json.loads(shown)["classes"] == [1, 2, 9]


def test_warnings_are_one_line(folder: Path) -> None:
    run(
        "fit", "table.csv", "--target", "stars", "--drop", "grade", "--conformal", "0.01",
        "--out", "m", *QUICK,
    )  # fmt: skip
    program = Path(sys.executable).with_name("echelon")
    command = [program, "predict", "m", "table.csv", "--out", "p.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("echelon: warning: a coverage of 0.9 needs 9")
    assert done.stderr.count("\n") == 1


def test_rows_for_intervals_are_used_for_nothing_else(folder: Path, monkeypatch) -> None:
    """Fit sees none of the rows that conformalize sees."""
    from echelon import OrdinalClassifier

    seen = {}

    def note(name, original):
        def noted(self, features, target, *rest, **options):
            seen[name] = set(features.index)
            return original(self, features, target, *rest, **options)

        monkeypatch.setattr(OrdinalClassifier, name, noted)

    for name in ("fit", "calibrate", "conformalize"):
        note(name, getattr(OrdinalClassifier, name))
    run(
        "fit", "table.csv", "--target", "stars", "--out", "m", "--conformal", "0.2",
        "--calibrate", "isotonic", *QUICK,
    )  # fmt: skip
    assert len(set.union(*seen.values())) == sum(map(len, seen.values())) == 300


@pytest.mark.usefixtures("few_steps")
def test_compare_and_report(folder: Path) -> None:
    arguments = (
        "compare", "table.csv", "--target", "grade", "--classes", "lo,mid,hi", "--drop", "stars",
        "--methods", "corn,ornn", "--seeds", "2", "--workers", "1", "--out", "runs", *QUICK,
    )  # fmt: skip
    document = json.loads(run(*arguments, "--json"))
    assert {row["method"] for row in document["runs"]} == {
        "corn",
        "ornn",
        "constant",
        "cumulative link",
    }
    assert all(row["split"] == "test" and row["mae"] >= 0 for row in document["runs"])
    shown = run(*arguments)  # finished runs are kept
    assert "cumulative link" in shown
    assert "report runs" in shown
    run("report", "runs", "--charts", "figures", "--image", "svg")
    assert Path("runs/report.html").stat().st_size > 500_000
    assert len(list(Path("figures").glob("*.svg"))) == 7
    assert json.loads(run("report", "runs", "--out", "p.html", "--json"))["page"] == "p.html"


def test_large_files_are_read_in_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("fit", "table.csv", "--target", "stars", "--drop", "grade", "--out", "m", *QUICK)
    run("predict", "m", "table.csv", "--out", "whole.csv")
    monkeypatch.setattr("echelon.cli.reading.CHUNK_ROWS", 70)
    expected = pd.read_csv("whole.csv")
    for name in ("table.csv", "table.parquet"):
        run("predict", "m", name, "--out", "parts.csv")
        pd.testing.assert_frame_equal(pd.read_csv("parts.csv"), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "missing.csv", "--target", "x", "--out", "m"), "there is no file missing.csv"),
        (("fit", "table.csv", "--target", "x", "--out", "m"), "has no column 'x'; it has: a, b"),
        (("fit", "table.csv", "--target", "grade", "--out", "m"), "say it with classes="),
        (("fit", "table.csv", "--target", "stars", "--out", "no/m"), "folder no does not exist"),
        (
            ("fit", "table.csv", "--target", "stars", "--classes", "a,b", "--out", "m"),
            "must be numbers",
        ),
        (
            ("fit", "table.csv", "--target", "stars", "--method", "corm", "--out", "m"),
            "did you mean 'corn'",
        ),
        (("predict", "table.csv", "table.csv", "--out", "p"), "not a file of echelon's"),
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


def test_a_struct_that_is_dropped_does_no_harm(folder: Path) -> None:
    table = pd.read_csv("table.csv")[["a", "stars"]]
    table.assign(odd=[{"x": 1}] * len(table)).to_parquet("struct.parquet")
    run("fit", "struct.parquet", "--target", "stars", "--drop", "odd", "--out", "m", *QUICK)
    run("predict", "m", "struct.parquet", "--out", "p.csv")


def test_a_file_without_rows_gives_a_header(folder: Path) -> None:
    run("fit", "table.csv", "--target", "stars", "--drop", "grade", "--out", "m", *QUICK)
    pd.read_parquet("table.parquet").head(0).to_parquet("empty.parquet")
    Path("empty.csv").write_text(Path("table.csv").read_text().split("\n")[0] + "\n")
    for name in ("empty.parquet", "empty.csv"):
        run("predict", "m", name, "--out", "p.csv")
        assert Path("p.csv").read_text() == (
            "prediction,probability_1,probability_2,probability_3\n"
        )


def test_odd_cells_are_said_once_for_the_whole_file(folder: Path, monkeypatch) -> None:
    table = pd.read_csv("table.csv", dtype=str).drop(columns=["grade", "weight"])
    table.loc[[3, 150, 280], "a"] = ["low", "high", "high"]
    table.to_csv("odd.csv", index=False)
    with pytest.warns(UserWarning, match="column 'a' holds numbers, and 3 of its cells") as said:
        run("fit", "odd.csv", "--target", "stars", "--conformal", "0.2", "--out", "m", *QUICK)
    assert len(said) == 1
    monkeypatch.setattr("echelon.cli.reading.CHUNK_ROWS", 70)
    with pytest.warns(UserWarning, match="3 of its cells .* such as 'low', 'high'") as said:
        run("predict", "m", "odd.csv", "--out", "p.csv")
    assert len(said) == 1
    table.loc[[3, 150, 280], "a"] = ""
    table.to_csv("blank.csv", index=False)
    run("predict", "m", "blank.csv", "--out", "q.csv")
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


def test_labels_keep_their_digits_and_their_order(folder: Path) -> None:
    table = pd.read_csv("table.csv")[["a", "b", "c", "stars"]]
    for labels in ([0.1234567891, 0.1234567892, 3.5], [7, 2**63 + 1, 2**64 - 1]):
        table["stars"] = [repr(labels[row % 3]) for row in range(300)]
        table.to_csv("labels.csv", index=False)
        shown = run("fit", "labels.csv", "--target", "stars", "--conformal", "0.1", "--out", "m",
                    "--json", *QUICK)  # fmt: skip
        assert json.loads(shown)["classes"] == labels
        run("predict", "m", "labels.csv", "--out", "p.csv")
        found = pd.read_csv("p.csv", dtype=str)
        for name in ("prediction", "lower", "upper"):
            assert set(found[name]) <= set(map(repr, labels))
        assert found["upper"].nunique() > 1 or found["lower"].nunique() > 1
        run("evaluate", "m", "labels.csv", "--target", "stars")


def test_a_class_may_be_named_na(folder: Path) -> None:
    table = pd.read_csv("table.csv")[["a", "b", "grade"]].replace({"lo": "NA"})
    table.to_csv("na.csv", index=False)
    arguments = ("--target", "grade", "--classes", "NA,mid,hi")
    run("fit", "na.csv", *arguments, "--out", "m", *QUICK)
    run("evaluate", "m", "na.csv", "--target", "grade")
    with pytest.raises(ValueError, match="missing labels"):
        CliRunner().invoke(
            app, ["fit", "na.csv", *arguments[:3], "mid,hi", "--out", "n"], catch_exceptions=False
        )


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


def test_a_grid_file_of_wrong_types_is_one_line_and_code_2(folder, capsys, monkeypatch) -> None:
    Path("grid.toml").write_text(
        "data = 'table.csv'\ntarget = 'stars'\n[grid]\nlearning_rate = ['fast']\n"
    )
    arguments = ["echelon", "grid", "grid.toml", "--out", "m", "--dry-run"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        main()
    shown = capsys.readouterr().err
    assert (stopped.value.code, shown.count("\n")) == (2, 1)
    assert "learning_rate must be a number; got 'fast'" in shown


def test_a_cluster_that_is_not_there_is_one_line(folder, capsys, monkeypatch) -> None:
    arguments = "compare table.csv --target stars --drop grade --cluster 127.0.0.1:1 --out runs"
    monkeypatch.setattr(sys, "argv", ["echelon", *arguments.split()])
    with pytest.raises(SystemExit) as stopped:
        main()
    shown = capsys.readouterr().err
    assert (stopped.value.code, shown.count("\n")) == (2, 1)
    assert "there is no Ray cluster at '127.0.0.1:1'" in shown


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


def test_labels_that_are_formulas_can_be_made_harmless(folder) -> None:
    table = pd.read_csv("table.csv").drop(columns="grade")
    table["stars"] = table["stars"].map({1: "=1+1", 2: "@x", 3: "-3"})
    table.to_csv("odd.csv", index=False)
    run("fit", "odd.csv", "--target", "stars", "--classes", "=1+1,@x,-3", "--out", "m", *QUICK)
    run("predict", "m", "odd.csv", "--out", "plain.csv")
    run("predict", "m", "odd.csv", "--out", "safe.csv", "--formula-safe")
    plain, safe = (pd.read_csv(name, dtype=str) for name in ("plain.csv", "safe.csv"))
    assert set(plain["prediction"]) <= {"=1+1", "@x", "-3"}
    assert set(safe["prediction"]) <= {"'=1+1", "'@x", "-3"}
    assert (safe["prediction"].str.removeprefix("'") == plain["prediction"]).all()
    pd.testing.assert_frame_equal(plain.iloc[:, 1:], safe.iloc[:, 1:])
    assert not any(
        line.startswith(("=", "@")) for line in Path("plain.csv").read_text().splitlines()
    )
