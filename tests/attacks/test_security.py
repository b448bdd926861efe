"""Every sentence of SECURITY.md holds."""

import re
from pathlib import Path

import pytest

from tests.attacks.harness import Attacker, Outcomes
from tests.attacks.security import PROOFS

SECURITY = Path(__file__).parents[2] / "SECURITY.md"


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
