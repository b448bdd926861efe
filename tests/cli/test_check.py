"""The command ``check``, and a survey export that goes through every command."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import echelon
from echelon.cli.main import main
from tests.cli.commands import run
from tests.evaluation.test_suspects import moved_labels
from tests.survey import CLASSES, TARGET, make_survey

BOOSTING = ("--model", "boosting:rounds=40")


@pytest.fixture(scope="module")
def survey():
    return make_survey(500)


@pytest.fixture
def exported(survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    survey.write(tmp_path)
    survey.write(tmp_path, slice(0, 60), "new.csv")
    monkeypatch.chdir(tmp_path)
    return survey


def refused(capsys, monkeypatch, *arguments: str) -> str:
    """What a command that ends with 2 says: one line."""
    monkeypatch.setattr(sys, "argv", ["echelon", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr().err
    assert (stopped.value.code, said.count("\n")) == (2, 1), said
    return said


def test_a_survey_export_goes_through_every_command(exported) -> None:
    looked = run("check", "survey.csv", "--target", TARGET)
    assert "semicolons between cells" in looked
    assert "left out: looks like an id" in " ".join(looked.split())
    assert "hold 99 in" in looked
    said = run("fit", "survey.csv", "--target", TARGET, "--classes", "@classes.txt", *BOOSTING,
               "--out", "m.echelon")  # fmt: skip
    missing = int((exported.ranks < 0).sum())
    assert f"{missing} rows left out, as they have no label" in said
    assert "left out: Respondent ID looks like an id" in said
    model = echelon.load("m.echelon")
    assert model.classes_.tolist() == CLASSES
    by_name = {column.name: column for column in model.schema_.columns}
    assert not {"Respondent ID", "No.", "comment"} & set(by_name)
    assert (by_name["income"].writing, by_name["visited"].writing) == (",", "dmy")
    scores = json.loads(run("evaluate", "m.echelon", "survey.csv", "--target", TARGET, "--out",
                            "run", "--json"))  # fmt: skip
    assert (scores["unlabelled"], scores["rows"]) == (missing, 500 - missing)
    assert scores["metrics"]["mae"] < 0.7
    run("predict", "m.echelon", "new.csv", "--keep", "Respondent ID,region", "--risk",
        "P(y<=disagree, somewhat)", "--out", "p.csv")  # fmt: skip
    found = pd.read_csv("p.csv")
    assert found["Respondent ID"].tolist() == exported.written["Respondent ID"][:60].tolist()
    risk = found["P(y<=Disagree, somewhat)"]
    parts = found[[f"probability_{name}" for name in CLASSES[:2]]].sum(axis=1)
    np.testing.assert_allclose(risk, parts, atol=1e-5)
    page = json.loads(run("report", "run", "--json"))["page"]
    assert Path(page).stat().st_size > 1000
    shown = run("info", "m.echelon")
    assert "survey.csv" in shown
    assert "accuracy" in shown


def test_the_export_is_read_as_the_clean_table_is(exported) -> None:
    """The same numbers, to the last bit, but for the codes of those who did not answer."""
    run("fit", "survey.csv", "--target", TARGET, "--classes", "@classes.txt", *BOOSTING,
        "--out", "m", "--json")  # fmt: skip
    schema = echelon.load("m").schema_
    read = schema.read(exported.written)
    for i, column in enumerate(schema.measured):
        if column.name in exported.clean and column.kind == "number":
            values, clean = read.numbers[:, i], exported.clean[column.name].to_numpy(float)
            np.testing.assert_array_equal(np.where(values == 99, np.nan, values), clean)


def test_output_by_suffix_top_and_outside(exported) -> None:
    run("fit", "survey.csv", "--target", TARGET, "--classes", "@classes.txt", *BOOSTING,
        "--out", "m", "--json")  # fmt: skip
    new = exported.written.head(30).copy()
    new.loc[3, "wait"] = "9.999,5"
    new.loc[4, "region"] = "Moon"
    new.to_csv("odd.csv", sep=";", index=False)
    frames = {}
    for name in ("p.csv", "p.parquet", "p.xlsx", "p.jsonl"):
        said = run("predict", "m", "odd.csv", "--keep", "No.", "--out", name)
        assert "2 of 30 rows lie outside what the model was trained on" in said
        readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".xlsx": pd.read_excel}
        reader = readers.get(Path(name).suffix, lambda path: pd.read_json(path, lines=True))
        frames[name] = reader(name)
    for name, frame in frames.items():
        assert frame.columns.tolist() == frames["p.csv"].columns.tolist(), name
        np.testing.assert_allclose(frame.iloc[:, 2:7].astype(float), frames["p.csv"].iloc[:, 2:7],
                                   rtol=1e-4)  # fmt: skip
    assert frames["p.csv"]["outside"].fillna("").tolist()[3:5] == ["wait", "region"]
    risk = ("--risk", "P(y>=Agree, somewhat)")
    run("predict", "m", "odd.csv", "--keep", "No.", *risk, "--top", "5", "--out", "top.csv")
    run("predict", "m", "odd.csv", "--keep", "No.", *risk, "--out", "all.csv")
    name = "P(y>=Agree, somewhat)"
    expected = pd.read_csv("all.csv").sort_values(name, ascending=False, kind="stable").head(5)
    assert pd.read_csv("top.csv")["No."].tolist() == expected["No."].tolist()


N = 120


@pytest.mark.parametrize(
    ("cells", "kind", "holds"),
    [
        ([f"€ {1 + i}.{i:03d},55" for i in range(N)], "number",
         "1000.55 to 120120, with decimal commas"),
        ([f"${1_000 + 37 * i:,}" for i in range(N)], "number", "1000 to 5403"),
        ([f"{1 + i % 28} {('Mar', 'Oct')[i % 2]} {2020 + i % 5}" for i in range(N)], "date",
         "2020-03-01 to 2024-10-26, the month in words"),
        ([f"{('Mai', 'Dezember')[i % 2]} {1 + i % 28}, {2020 + i % 5}" for i in range(N)], "date",
         "2020-05-01 to 2024-12-26, the month in words"),
    ],
)  # fmt: skip
def test_a_file_of_amounts_or_dates_in_words(tmp_path: Path, cells, kind: str, holds: str) -> None:
    path = tmp_path / "one.csv"
    pd.DataFrame({"seen": cells, "y": np.arange(N) % 3}).to_csv(path, sep=";", index=False)
    (column, _) = json.loads(run("check", str(path), "--target", "y", "--json"))["columns"]
    assert (column["kind"], column["use"]) == (kind, "used")
    assert holds in column["holds"]


def test_amounts_of_two_currencies_are_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    cells = [f"{'$' if i % 2 else '€'} {i}.50" for i in range(N)]
    pd.DataFrame({"price": cells, "y": np.arange(N) % 3}).to_csv(path, index=False)
    said = run("check", str(path), "--target", "y")
    assert "column 'price' holds amounts in $ and €" in " ".join(said.split())


def coded(folder: Path) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"q": generator.integers(1, 6, 300), "age": generator.integers(18, 99, 300)}
    )
    frame["y"] = np.searchsorted([2, 4], frame["q"] + generator.normal(0, 0.5, 300)) + 1
    frame.loc[::10, "q"] = 99
    frame.loc[5::20, "y"] = 9
    frame.loc[3, "age"] = 99
    frame.to_csv(folder / "coded.csv", index=False)
    return frame


def test_check_names_the_option_for_codes_and_the_model_keeps_them(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = coded(tmp_path)
    said = " ".join(run("check", "coded.csv", "--target", "y").split())
    assert "column 'q' holds 99 in 30 cells" in said
    assert "--missing-codes q=99" in said  # and not all columns: somebody may be 99 years old
    codes = ("--missing-codes", "q=99,y=9")
    found = json.loads(run("check", "coded.csv", "--target", "y", *codes, "--json"))
    assert found["columns"][0]["missing"] == 0.1
    assert found["unlabelled"] == 15
    run("fit", "coded.csv", "--target", "y", *codes, *BOOSTING, "--out", "m", "--json")
    assert "10.5 % missing, with 99, 1 to 5" in run("info", "m")
    scores = json.loads(run("evaluate", "m", "coded.csv", "--target", "y", "--json"))
    assert scores["unlabelled"] == 15  # the code of labels was kept, too
    frame[["q", "age"]].iloc[:1].to_csv("code.csv", index=False)
    frame[["q", "age"]].iloc[:1].assign(q="").to_csv("empty.csv", index=False)
    assert run("predict", "m", "code.csv") == run("predict", "m", "empty.csv")


def test_the_target_may_stand_in_another_sheet(tmp_path: Path, capsys, monkeypatch) -> None:
    pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    with pd.ExcelWriter("a.xlsx") as writer:
        pd.DataFrame({"note": ["a", "b"]}).to_excel(writer, sheet_name="Notes", index=False)
        coded(tmp_path).to_excel(writer, sheet_name="Data", index=False)
    said = refused(capsys, monkeypatch, "check", "a.xlsx", "--target", "y")
    assert "the sheet 'Notes'; --sheet names another: 'Data'" in said
    assert len(json.loads(run("check", "a.xlsx", "--sheet", "Data", "--json"))["columns"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "--out", "m"), "are strings, whose order is not known: name them with --classes"),
        (("fit", "--out", "m", "--classes", "@none.txt"), "there is no file none.txt with classes"),
        (("fit", "--out", "m", "--classes", "a,b"), "that is not among --classes"),
        (("fit", "--out", "m", "--classes", "@classes.txt", "--missing-target", "error"),
         "--missing-target drop leaves them out"),
        (("fit", "--out", "m", "--missing-target", "maybe"), "must be drop or error"),
        (("fit", "--out", "m", "--sep", "##"), "--sep must be one character"),
        (("fit", "--out", "m", "--decimal", "x"), "--decimal must be . or ,"),
        (("fit", "--out", "m", "--encoding", "x"), "--encoding must be the name of one"),
        (("check", "--drop", "odd"), "has no column 'odd'"),
        (("check", "--sheet", "2"), "is for Excel and MedMNIST files, and survey.csv is none"),
        (("check", "--missing-codes", "odd=99"), "names the column 'odd', which the table"),
        (("check", "--missing-codes", "q1="), "must be codes such as 99, or those of a column"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("exported")
def test_what_is_refused_and_in_which_words(capsys, monkeypatch, arguments, words: str) -> None:
    command, *options = arguments
    said = refused(capsys, monkeypatch, command, "survey.csv", "--target", TARGET, *options)
    assert words in said


@pytest.mark.usefixtures("exported")
def test_predictions_that_are_refused(capsys, monkeypatch) -> None:
    run("fit", "survey.csv", "--target", TARGET, "--classes", "@classes.txt", *BOOSTING,
        "--out", "m", "--json")  # fmt: skip
    for options, words in (
        (("--keep", "odd"), "--keep names the column 'odd'"),
        (("--risk", "P(y<=odd)"), "--risk names the class 'odd'"),
        (("--top", "0"), "--top must be at least 1"),
        (("--out", "p.txt"), "can be written to files that end in .csv, .parquet"),
    ):
        assert words in refused(capsys, monkeypatch, "predict", "m", "new.csv", *options)
    assert "no file matches *.tsv" in refused(capsys, monkeypatch, "predict", "m", "*.tsv")
    said = refused(capsys, monkeypatch, "predict", "m", "a fine day")
    assert "give a table with its columns" in said
    assert "--labels needs --target" in refused(capsys, monkeypatch, "check", "new.csv", "--labels")


def test_a_single_sentence_is_predicted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [f"{'good' if i % 2 else 'bad'} course" for i in range(40)]
    pd.DataFrame({"text": texts, "y": np.arange(40) % 2}).to_csv("t.csv", index=False)
    run("fit", "t.csv", "--target", "y", "--text", "text", "--backbone", "lstm", "--max-epochs",
        "1", "--device", "cpu", "--out", "m", "--json")  # fmt: skip
    shown = run("predict", "m", "good course")
    assert shown.splitlines()[0].startswith("prediction,probability_0")
    assert len(shown.splitlines()) == 2


def test_suspect_labels_have_their_lines(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    features, ranks, moved = moved_labels(400, 5, 0.05)
    frame = pd.DataFrame(features, columns=[f"x{i}" for i in range(features.shape[1])])
    frame.assign(y=ranks).iloc[:200].to_csv("a.csv", index=False)
    frame.assign(y=ranks).iloc[200:].to_csv("b.csv", index=False)
    judge = ("--labels", "--model", "boosting:rounds=40")
    found = json.loads(run("check", "a.csv", "b.csv", "--target", "y", *judge, "--json"))
    labels = found["labels"]
    listed = labels["suspects"][:20]
    rows = [one["row"] - 1 + (200 if one["file"] == "b.csv" else 0) for one in listed]
    assert all(one["line"] == one["row"] + 1 for one in listed)
    assert [ranks[row] for row in rows] == [one["label"] for one in listed]
    assert moved[rows].mean() >= 0.5
    shown = run("check", "a.csv", "b.csv", "--target", "y", *judge)
    assert "chance alone would give about" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
