"""A sample of every category of attacks; `tests/slow/test_attacks.py` tries them all."""

import pytest

from tests.attacks.categories import CATEGORIES
from tests.attacks.harness import Attacker, Outcomes


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CATEGORIES)
def test_a_result_or_a_refusal(attacker: Attacker, name: str, capsys) -> None:
    outcomes = attacker.attack(name)
    with capsys.disabled():
        print(f"\n{Outcomes.head()}\n{outcomes.row()}")
    assert outcomes.total >= CATEGORIES[name].quick
    assert not outcomes.failures, outcomes.complaint()
