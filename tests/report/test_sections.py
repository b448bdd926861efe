"""Sections: what applies is there, and what does not is not."""

import re

import pytest

from echelon.report.charts import all_charts
from echelon.report.explanation import explained_section
from echelon.report.sections import facts, page_sections
from echelon.runs import Comparison, read_runs
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_made_runs(tmp_path_factory.mktemp("runs"), rows=80, seeds=2)


def contents(found: Comparison) -> str:
    sections = page_sections(found, all_charts(found), explained_section(found))
    return "".join(section.content for section in sections)


def test_a_single_model_has_no_sections_about_several(folder) -> None:
    single = contents(Comparison.of(read_runs(folder / "corn-seed0")))
    several = contents(Comparison.of(read_runs(folder)))
    for words in ("Are the differences real?", "Error of each method", "within noise"):
        assert words in several
        assert words not in single
    assert ">constant</a>" in single  # a constant of its own rows stands beside it
    assert "always guessing the same class" in single


def test_the_table_is_sorted_and_the_best_marked(folder) -> None:
    found = Comparison.of(read_runs(folder))
    (body,) = re.findall("<tbody>(.*?)</tbody>", contents(found), re.S)[:1]
    errors = [float(value) for value in re.findall(r'data-label="MAE"[^>]*>([\d.]+)', body)]
    assert errors == sorted(errors)
    assert body.count("best method") == 1
    assert body.count('class="best"') == 6  # one in each column


def test_the_top_says_when_what_of_which_data_and_by_which_version(folder) -> None:
    shown = facts(Comparison.of(read_runs(folder)))
    for words in ("Date", "UTC", "Methods", "made up", "1,000 train, 80 test rows", "echelon 0."):
        assert words in shown
