"""The command ``fit``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import echelon
from echelon.cli.main import app
from echelon.data.labels import Labels
from echelon.data.schema import TableSchema
from echelon.runs import read_run
from tests.cli.commands import QUICK, run


def test_the_score_of_intervals_is_an_option(folder: Path) -> None:
    asked = "fit table.csv --target stars --drop grade --out m --conformal 0.2 --conformal-score"
    run(*asked.split(), "rps", *QUICK)
    assert json.loads(run("info", "m", "--json"))["interval_score"] == "rps"
    run("predict", "m", "table.csv", "--out", "p.csv")
    found = pd.read_csv("p.csv")
    assert (found["lower"] <= found["upper"]).all()
    wrong = CliRunner().invoke(app, [*asked.split(), "aps"])
    assert "score must be one of 'probability', 'rps', 'window'; got 'aps'" in str(wrong.exception)


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


def test_a_method_takes_options_after_colons(folder: Path) -> None:
    asked = "fit table.csv --target stars --drop grade --out m --method"
    run(*asked.split(), "margin:penalty=logistic:thresholds=immediate", *QUICK)
    loaded = echelon.load("m")
    assert loaded.get_params()["method"] == "margin"
    expected = {"penalty": "logistic", "thresholds": "immediate"}
    assert loaded.get_params()["method_options"] == expected
    done = CliRunner().invoke(app, [*asked.split(), "margin:warmth=2"])
    assert "margin has no option 'warmth=2'; its options are: thresholds" in str(done.exception)


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


def test_the_classes_of_the_rows_are_looked_for_once(folder: Path, monkeypatch) -> None:
    """What the rows hold is known when they are read; the fit takes it as given."""
    from echelon.data.labels import Labels

    original, searches = Labels.of.__func__, []

    def noted(cls, y, classes=None):
        searches.extend([len(y)] if classes is None else [])
        return original(cls, y, classes)

    monkeypatch.setattr(Labels, "of", classmethod(noted))
    model = ("--model", "cumulative_link", "--json", "--out", "m")
    run("fit", "table.csv", "--target", "stars", "--conformal", "0.2", *model)
    assert searches == [300]


def test_a_struct_that_is_dropped_does_no_harm(folder: Path) -> None:
    table = pd.read_csv("table.csv")[["a", "stars"]]
    table.assign(odd=[{"x": 1}] * len(table)).to_parquet("struct.parquet")
    run("fit", "struct.parquet", "--target", "stars", "--drop", "odd", "--out", "m", *QUICK)
    run("predict", "m", "struct.parquet", "--out", "p.csv")


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
    with pytest.raises(ValueError, match="have no label in the column"):
        CliRunner().invoke(
            app,
            ["fit", "na.csv", *arguments[:3], "mid,hi", "--out", "n", "--missing-target", "error"],
            catch_exceptions=False,
        )


# ---- models --------------------------------------------------------------------------------------


def test_who_says_nothing_gets_a_blend_of_several_models(folder: Path) -> None:
    table = pd.read_csv("table.csv").drop(columns="stars")
    table.loc[::7, "kind"] = None
    table.to_csv("messy.csv", index=False)
    asked = "fit messy.csv --target grade --classes lo,mid,hi --time-limit 6 --decision kappa"
    shown = json.loads(run(*asked.split(), "--device", "cpu", "--out", "m", "--json"))
    assert shown["kind"] == "auto"
    assert {row["member"] for row in shown["leaderboard"]} >= {"cumulative_link", "boosting"}
    assert shown["kappa"]["low"] < shown["kappa"]["kappa"] < shown["kappa"]["high"]
    run("predict", "m", "messy.csv", "--out", "p.csv")
    assert set(pd.read_csv("p.csv")["prediction"]) == {"lo", "mid", "hi"}


@pytest.mark.parametrize("option", ["--method=ce", "--backbone=linear"])
def test_options_of_a_network_alone_make_it_one(folder: Path, option: str) -> None:
    asked = ("fit", "table.csv", "--target", "stars", "--time-limit", "2", "--out", "m", "--json")
    assert json.loads(run(*asked, option, "--device", "cpu"))["kind"] == "network"


def test_a_model_that_is_no_network(folder: Path) -> None:
    arguments = ("--target", "stars", "--drop", "grade", "--weight", "weight", "--json")
    shown = run(
        "fit", "table.csv", *arguments, "--model", "cumulative_link:link=probit", "--out", "m",
        "--decision", "mode", "--class-weight", "balanced", "--calibrate", "isotonic",
        "--conformal", "0.2",
    )  # fmt: skip
    assert json.loads(shown)["kind"] == "cumulative_link"
    assert json.loads(shown)["best_epoch"] is None
    model = echelon.load("m")
    assert (model.link, model.decision, model.class_weight) == ("probit", "mode", "balanced")
    run("predict", "m", "table.csv", "--out", "p.csv")
    assert list(pd.read_csv("p.csv"))[:3] == ["prediction", "lower", "upper"]
    scores = json.loads(run("evaluate", "m", "table.csv", "--target", "stars", "--json"))
    assert scores["metrics"]["mae"] < 0.6


@pytest.mark.parametrize(
    "spec",
    [
        "svm:kernel=poly:degree=2",
        "prank:average=false",
        "neighbors:metric=none:votes=distance",
        "reduction:scheme=augmented:train_cost=squared",
    ],
)
def test_options_of_models_stand_in_their_names(folder: Path, spec: str) -> None:
    arguments = ("--target", "stars", "--drop", "grade", "--model", spec, "--out", "m", "--json")
    name, *options = spec.split(":")
    assert json.loads(run("fit", "table.csv", *arguments))["kind"] == name
    model = echelon.load("m")
    found = {key: model.get_params()[key] for key, _ in (one.split("=") for one in options)}
    assert [f"{key}={str(value).lower()}" for key, value in found.items()] == options
    run("predict", "m", "table.csv", "--out", "p.csv")
    assert len(pd.read_csv("p.csv")) == len(pd.read_csv("table.csv"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--recipe", "paper"), "the model cumulative_link has no --recipe; of the options"),
        (("--recipe", "default"), "has no --recipe"),
        (("--method", "corn"), "has no --method"),
        (("--backbone", "mlp"), "has no --backbone"),
        (("--text", "kind"), "has no --text"),
        (("--max-epochs", "3"), "has no --max-epochs"),
        (("--device", "cpu"), "--decision, --class-weight: leave out --device"),
        (("--devices", "1"), "has no --devices"),
        (("--resume",), "has no --resume"),
        (
            ("--model", "cumulative_link:depth=3"),
            "has no option 'depth=3'; its options are: class_weight",
        ),
        (("--model", "corn"), "--model must be one of network, boosting, cumulative_link"),
    ],
)
def test_options_of_other_models_are_refused(folder: Path, arguments, message: str) -> None:
    given = ("--target", "stars", "--model", "cumulative_link", "--out", "m", *arguments)
    result = CliRunner().invoke(app, ["fit", "table.csv", *given])
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
    assert not Path("m").exists()


def test_the_network_is_what_it_was_without_a_word(folder: Path) -> None:
    """Options that are not given are those of the model itself."""
    run(
        "fit",
        "table.csv",
        "--target",
        "stars",
        "--out",
        "m",
        "--max-epochs",
        "1",
        "--device",
        "cpu",
    )
    model = echelon.load("m")
    assert (model.kind, model.method, model.recipe) == ("network", "corn", "default")


def test_the_option_of_epochs_stands_beside_other_settings(folder: Path) -> None:
    asked = "fit table.csv --target stars --drop grade --out m --device cpu --max-epochs 1 --model"
    run(*asked.split(), "network:settings.learning_rate=0.5:settings.batch_size=99")
    settings = echelon.load("m").settings
    assert settings == {"learning_rate": 0.5, "batch_size": 99, "max_epochs": 1}
    wrong = CliRunner().invoke(app, [*asked.split(), "network:settings.max_epoch=3"])
    assert "no setting 'max_epoch'" in str(wrong.exception)


def test_a_plain_fit_reads_the_table_once_and_asks_once_which_labels_there_are(
    folder: Path, monkeypatch
) -> None:
    """Each reading of a large table takes as long as the first."""
    counted: dict[str, int] = {}

    def count(owner: type, name: str) -> None:
        whole = getattr(owner, name)

        def counting(*arguments: Any, **options: Any) -> Any:
            counted[f"{owner.__name__}.{name}"] = counted.get(f"{owner.__name__}.{name}", 0) + 1
            return whole(*arguments, **options)

        monkeypatch.setattr(owner, name, counting)

    count(TableSchema, "of")
    count(TableSchema, "read")
    count(Labels, "of")
    run("fit", "table.csv", "--target", "stars", "--drop", "grade,weight", "--model", "network",
        "--out", "m", *QUICK)  # fmt: skip
    # The command finds the labels, the fit checks those that it is given, and the summary that is
    # printed looks at those of some thousand rows.
    assert counted == {"TableSchema.of": 1, "TableSchema.read": 1, "Labels.of": 3}


def test_calibration_that_does_not_help_is_left_out_and_that_is_said(folder: Path) -> None:
    asked = "fit table.csv --target stars --drop grade --model cumulative_link --out m"
    shown = run(*asked.split(), "--calibrate", "isotonic")  # on 30 rows
    assert "not calibrated: on rows of its own, the map does not help clearly" in shown
    assert "log score" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert echelon.load("m").calibration_ is None
    document = json.loads(run(*asked.split(), "--calibrate", "temperature", "--json"))
    assert document["is_calibrated"] is (echelon.load("m").calibration_ is not None)


def test_a_summary_is_printed_and_saved(folder: Path) -> None:
    asked = "fit table.csv --target stars --model cumulative_link --out m --group e --summary"
    formula = ("--formula", "stars ~ a + log(b) + C(kind)", "--reference", "kind=small")
    shown = run(*asked.split(), *formula)
    for words in ("odds ratio", "log(b)", "kind = big", "Brant", "clustered by group", "per unit"):
        assert words in shown
    assert echelon.load("m").summary().text() in shown
    found = json.loads(run(*asked.split(), *formula, "--nonproportional", "a", "--json"))
    assert [row["name"] for row in found["summary"]["coefficients"]].count("a") == 2
    run("evaluate", "m", "table.csv", "--target", "stars", "--out", "run")
    assert read_run("run").outcome["statistics"]["errors"] == "clustered"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--formula", "grade ~ a"), "--formula is about 'grade' and --target is 'stars'"),
        (("--formula", "stars ~ a +"), "cannot be read"),
        (("--formula", "stars ~ zzz"), "the formula needs the column 'zzz'"),
        (("--reference", "kind"), "--reference must be pairs such as"),
        (("--reference", "kind=huge"), "must be one of its categories"),
        (("--nonproportional", "zzz"), "nonproportional names 'zzz'"),
        (("--summary", "--model", "boosting"), "the model boosting has no --summary"),
    ],
)
def test_wrong_statistics_are_refused(folder: Path, arguments, message: str) -> None:
    asked = "fit table.csv --target stars --model cumulative_link --drop grade,weight --out m"
    done = CliRunner().invoke(app, [*asked.split(), *arguments])
    assert message in str(done.exception)
