"""Progress bars: on standard error, and only where they are asked for."""

import pytest

from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.training.progress import epoch_bar, fit_bar, run_bar, work_bar

QUICK = {"settings": {"max_epochs": 3}, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def data():
    return make_friedman(600, num_classes=4, seed=5)


def test_progress_goes_to_standard_error(data, capsys) -> None:
    OrdinalClassifier(**QUICK, verbose=1).fit(data.features, data.ranks)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "600 rows, 10 features: about" in shown.err
    assert "val RPS 0." in shown.err
    assert "(best 0." in shown.err
    assert max(map(len, shown.err.splitlines())) <= 80
    OrdinalClassifier(**QUICK).fit(data.features, data.ranks)
    assert capsys.readouterr().err == ""


def test_nothing_is_shown_unasked(capsys) -> None:
    with epoch_bar("fit", 3, shown=False) as report:
        assert report is None
    for bar in (run_bar, fit_bar):
        with bar(3, shown=False) as report:
            assert report is None
    assert capsys.readouterr() == ("", "")


def test_titles_are_text_and_no_markup(capsys) -> None:
    """A title may come from a file, and must neither vanish nor colour the terminal."""
    with epoch_bar("[red]fit[/red]", 2, shown=True) as report:
        report({"epoch": 1, "loss": 0.5})
        report({"epoch": 2, "loss": 0.25})
    shown = capsys.readouterr().err
    assert "[red]fit[/red]" in shown
    assert "2/2" in shown
    assert "loss 0.250" in shown


def test_a_file_keeps_no_bar_over_runs(capsys) -> None:
    with run_bar(2, shown=True) as report:
        report("one", True)
        report("two", False)
    assert capsys.readouterr() == ("", "")


def test_several_fits_count_down(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, for rich
    with fit_bar(2, shown=True) as report:
        report(0, "boosting, fold 1", float("inf"))
        report(1, "boosting, fold 2", 75.4)
    shown = capsys.readouterr().err
    assert "boosting, fold 2" in shown
    assert "1:15 left" in shown


def test_a_line_fits_80_columns_with_its_time_left_and_the_best_so_far(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    scores = (0.5, 0.25, 0.375)
    with epoch_bar("refit", 1000, shown=True) as report:
        for epoch, score in enumerate(scores, start=1):
            report({"epoch": epoch, "loss": 12.345, "validation_quadratic_weighted_kappa": score})
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) <= 80
    assert "3/1000" in line
    assert line.endswith("loss 12.345  val QWK 0.375 (best 0.500)")  # of a kappa more is better


def test_a_bar_of_work_takes_what_is_done_and_is_silent_where_nobody_looks(capsys) -> None:
    with work_bar("explaining", 10, shown=False) as report:
        assert report is None
    with work_bar("explaining", 10, shown=True) as report:
        for _ in range(3):
            report(4, "importance")  # more than was planned is fine
    assert capsys.readouterr() == ("", "")
