"""One process attacks for all tests of this folder, as it takes seconds to start."""

import sys
from collections.abc import Iterator

import pytest

from tests.attacks.harness import Attacker


@pytest.fixture(scope="session")
def attacker(tmp_path_factory) -> Iterator[Attacker]:
    if not sys.platform.startswith("linux"):
        pytest.skip("processes are watched through /proc")
    started = Attacker(tmp_path_factory.mktemp("attacks"), "quick")
    yield started
    started.close()
