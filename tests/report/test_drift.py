"""The section on what changed: alarms first, and names that are shown and never run."""

from echelon.report.drift import drift_contents
from tests.runs.test_drifted import DOCUMENT, TEST


def test_alarms_come_first_and_say_what_changed() -> None:
    quiet = {**TEST, "name": "<b>calm</b>", "alarm": False, "adjusted_p_value": 1.0}
    (content,) = drift_contents({**DOCUMENT, "tests": [quiet, TEST]})
    assert "1 of 2 comparisons with the training rows found a change" in content
    assert content.index("size: values lie elsewhere") < content.index("&lt;b&gt;calm")
    assert "<b>calm" not in content
    assert "said: no counts" in content


def test_without_a_comparison_there_is_no_section_and_a_quiet_one_says_so() -> None:
    assert drift_contents(None) == []
    (content,) = drift_contents({**DOCUMENT, "tests": [{**TEST, "alarm": False}]})
    assert "None of 1 comparisons" in content
    assert "no change" in content
