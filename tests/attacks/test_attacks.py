"""A sample of every category of attacks, and a proof of every sentence of SECURITY.md.

They stand in one file, as one watched process serves all of them; `tests/slow/test_attacks.py`
tries every attack there is.
"""

import re
from pathlib import Path

import pytest

from tests.attacks.categories import CATEGORIES
from tests.attacks.harness import Attacker, Outcomes
from tests.attacks.security import PROOFS

SECURITY = Path(__file__).parents[2] / "SECURITY.md"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CATEGORIES)
def test_a_result_or_a_refusal(attacker: Attacker, name: str, capsys) -> None:
    outcomes = attacker.attack(name)
    with capsys.disabled():
        print(f"\n{Outcomes.head()}\n{outcomes.row()}")
    assert outcomes.total >= CATEGORIES[name].quick
    assert not outcomes.failures, outcomes.complaint()


# ---- SECURITY.md ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcomes(attacker: Attacker) -> Outcomes:
    return attacker.attack("security")


def test_every_sentence_has_a_proof() -> None:
    promised = SECURITY.read_text().partition("## What is left to you")[0]
    sentences = re.findall(r"^- ((?:.|\n(?!\n|- |#))+)", promised, flags=re.MULTILINE)
    assert [" ".join(one.split()) for one in sentences] == list(PROOFS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("sentence", PROOFS)
def test_sentence(outcomes: Outcomes, sentence: str) -> None:
    failed = {one["name"]: one for one in outcomes.failures}
    assert outcomes.total == len(PROOFS)
    assert sentence not in failed, f"{failed[sentence]['outcome']}: {failed[sentence]['detail']}"
