"""The glossary: every metric that is shown has its meaning, and links lead somewhere."""

import re

from echelon.evaluation.metrics import METRICS, shown_metrics
from echelon.report.glossary import Glossary, meanings


def test_every_metric_and_every_known_method_has_a_meaning_with_its_direction() -> None:
    found = meanings(["corn/tabm", "boosting", "sord:temperature=2", "<b>"])
    for row in shown_metrics(wide=True):
        assert row.direction in found[row.title].lower()
    assert {"corn", "boosting", "sord"} <= set(found)
    assert "<b>" not in found
    assert all(len(row.meaning) > 20 and row.meaning.endswith(".") for row in METRICS.values())


def test_a_link_leads_to_its_term_and_unknown_words_are_text() -> None:
    glossary = Glossary(["corn"])
    anchor = re.search('href="#(.*?)"', glossary.link("corn:option=1"))[1]
    assert f'id="{anchor}"' in glossary.list()
    assert 'id="term-mae"' not in glossary.list()  # nobody has linked it
    assert glossary.link("<i>mine") == "&lt;i&gt;mine"
