"""A sample of every category of attacks; `tests/slow/test_attacks.py` tries them all."""

import sys
from collections.abc import Iterator

import pytest

from tests.attacks.categories import CATEGORIES
from tests.attacks.harness import Attacker, Outcomes

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="processes are watched through /proc"
)


@pytest.fixture(scope="module")
def attacker(tmp_path_factory) -> Iterator[Attacker]:
    started = Attacker(tmp_path_factory.mktemp("attacks"), "quick")
    yield started
    started.close()


@pytest.mark.parametrize("name", CATEGORIES)
def test_a_result_or_a_refusal(attacker: Attacker, name: str, capsys) -> None:
    outcomes = attacker.attack(name)
    with capsys.disabled():
        print(f"\n{Outcomes.head()}\n{outcomes.row()}")
    assert outcomes.total >= CATEGORIES[name].quick // 2
    assert not outcomes.failures, outcomes.complaint()
