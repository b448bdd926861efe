"""Every method through the default compiler, which takes half a minute each."""

import pytest

from tests.cases import CASES, Case
from tests.contracts.test_compile_and_export import check_compiled


@pytest.mark.parametrize("case", CASES, ids=str)
def test_default_compiler(case: Case) -> None:
    check_compiled(case, backend="inductor")
