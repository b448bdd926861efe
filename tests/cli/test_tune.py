"""The command ``tune``."""

import json
from pathlib import Path

import pytest

import echelon
from tests.cli.commands import run

QUICK = (
    "tune", "table.csv", "--target", "stars", "--drop", "grade,weight", "--workers", "1",
    "--model", "cumulative_link", "--trials", "3", "--out", "tuned",
)  # fmt: skip


def stamps() -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in Path("tuned/trials").glob("[!.]*/DONE")}


def test_it_writes_a_model_and_says_what_was_chosen_and_what_it_is_worth(folder) -> None:
    shown = run(*QUICK)
    assert "225 rows for the search, 75 for the test; 3 trials" in shown
    document = json.loads(Path("tuned/tuning.json").read_text())
    best, default = document["validation"]["best"], document["validation"]["default"]
    assert best <= default
    assert f"{best:.4f}" in shown
    assert f"{document['test']['best']['ranked_probability_score']:.4f}" in shown
    model = echelon.load("tuned/model.echelon")
    assert model.kind == "cumulative_link"
    assert model.about_["tuned"] == document["spec"]
    # the line that it prints fits the same settings on all rows
    assert f"--model '{document['spec']}'" in shown
    fit = ("fit", "table.csv", "--target", "stars", "--drop", "grade,weight", "--out", "m.echelon")
    run(*fit, "--model", document["spec"])
    again = echelon.load("m.echelon")
    assert {name: again.get_params()[name] for name in document["best"]} == document["best"]


def test_started_again_it_repeats_no_trial_and_may_be_asked_for_more(folder) -> None:
    first = json.loads(run(*QUICK, "--json"))
    before = stamps()
    assert json.loads(run(*QUICK, "--json"))["trials"] == first["trials"]
    assert stamps() == before
    more = json.loads(run(*QUICK, "--trials", "5", "--json"))
    assert more["trials"][:3] == first["trials"]
    assert len(more["trials"]) == 5
    assert before.items() <= stamps().items()


def test_a_space_of_one_s_own(folder) -> None:
    Path("space.toml").write_text("ridge = {low = 1, high = 2, whole = true}\nlink = ['probit']\n")
    document = json.loads(run(*QUICK, "--space", "space.toml", "--trials", "9", "--json"))
    tried = [trial["values"] for trial in document["trials"]]
    assert tried[0] == {}
    assert sorted(values["ridge"] for values in tried[1:]) == [1, 2]  # there are no others


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--metric", "f1"), "f1"),
        (("--model", "boosting", "--text", "kind"), "reads numbers, dates and categories only"),
        (("--model", "blend"), "a name is enough"),
        (("--test-share", "1.5"), "test_share must be at least 0 and below 1"),
        (("--workers", "0"), "workers must be at least 1"),
    ],
)
def test_wrong_use_is_one_line(folder, options, reason: str, monkeypatch, capsys) -> None:
    import sys

    from echelon.cli.main import main

    monkeypatch.setattr(sys, "argv", ["echelon", *QUICK, *options])
    with pytest.raises(SystemExit) as stopped:
        main()
    shown = capsys.readouterr().err
    assert (stopped.value.code, shown.count("\n")) == (2, 1)
    assert reason in shown
