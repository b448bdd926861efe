"""Recipes: what is refused before anything is trained."""

import pytest

from echelon.methods import METHODS
from echelon.networks.table import BACKBONES
from echelon.training.recipes import make_spec

ENSEMBLES = [name for name, row in BACKBONES.items() if row.is_ensemble]
COUPLING = [name for name, row in METHODS.items() if row.couples_rows]


@pytest.mark.parametrize("backbone", ENSEMBLES)
@pytest.mark.parametrize("method", COUPLING)
def test_a_method_that_couples_rows_takes_no_ensemble(method: str, backbone: str) -> None:
    with pytest.raises(
        ValueError, match=f"couples the rows.*got the ensemble '{backbone}': choose"
    ):
        make_spec("default", method, backbone, ("table",), {})
    with pytest.raises(ValueError, match="couples the rows"):
        make_spec("default", method, {"table": backbone}, ("table", "text"), {})


def test_who_couples_rows_says_so() -> None:
    assert COUPLING == ["cnnpor", "ranking", "diffsort"]
    assert ENSEMBLES == ["tabm"]
