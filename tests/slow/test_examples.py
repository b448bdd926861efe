"""The examples that need other libraries, or a process of their own."""

from pathlib import Path

import pytest

from tests.test_examples import SLOW, run


@pytest.mark.parametrize("name", sorted(SLOW))
def test_an_example_runs(name: str, tmp_path: Path, capsys) -> None:
    run(name, tmp_path, capsys)
