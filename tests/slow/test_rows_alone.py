"""Rows alone and in files, for many more tables than the quick test has."""

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.test_cells import PHASES, check_rows_alone, tables


@settings(max_examples=150, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(table=tables(), fresh=tables(), size=st.integers(1, 7))
def test_a_row_is_predicted_the_same_however_it_is_given(
    tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame, fresh: pd.DataFrame, size: int
) -> None:
    check_rows_alone(tmp_path_factory.mktemp("rows"), table, fresh, size)
