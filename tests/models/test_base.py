"""What fitting means for every model, shown on quick ones: rows in, one model out, or none."""

import copy

import numpy as np
import pytest

from echelon import CumulativeLinkModel, OrdinalBoosting
from echelon.data import make_friedman
from echelon.data.labels import Labels
from echelon.data.rows import Rows
from echelon.data.schema import TableSchema

DATA = make_friedman(300, num_classes=4, seed=0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("moment", ["fit_rows", "unseen_predictions", "fit_again"])
def test_a_fit_that_does_not_end_leaves_the_model_as_it_was(monkeypatch, moment, error) -> None:
    model = OrdinalBoosting(rounds=10, random_state=0).fit(DATA.features, DATA.ranks)
    model.calibrate(DATA.features, DATA.ranks)
    before, attributes = model.predict_proba(DATA.features), set(vars(model))
    ordinary = getattr(OrdinalBoosting, moment)

    def breaks(self, *arguments):
        ordinary(self, *arguments)  # so that whatever it sets has been set
        raise error

    monkeypatch.setattr(OrdinalBoosting, moment, breaks)
    with pytest.raises(error):
        model.set_params(rounds=3).fit(-DATA.features, DATA.ranks)
    assert set(vars(model)) == attributes
    assert model.fitted_parameters_["rounds"] == 10
    np.testing.assert_array_equal(model.predict_proba(DATA.features), before)


def test_a_new_fit_forgets_what_belonged_to_the_old_one() -> None:
    model = CumulativeLinkModel().fit(DATA.features, DATA.ranks)
    model.calibrate(DATA.features, DATA.ranks).conformalize(DATA.features, DATA.ranks)
    anew = copy.deepcopy(model).fit(DATA.features[:, :3], DATA.ranks)
    assert (anew.calibration_, anew.calibration_summary_, anew.conformal_) == (None, None, None)
    assert anew.n_features_in_ == 3
    assert model.n_features_in_ == 10


def test_rows_that_were_read_give_the_same_model() -> None:
    """What a blend does with its members is what a fit does after reading."""
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    schema = TableSchema.of(DATA.features)
    rows = Rows(schema, schema.read(DATA.features), DATA.ranks, None, None)
    read = OrdinalBoosting(rounds=10).fit_read(rows, None, Labels.of(DATA.ranks, None), seed)
    fitted = OrdinalBoosting(rounds=10, random_state=0).fit(DATA.features, DATA.ranks)
    np.testing.assert_array_equal(
        read.predict_proba(DATA.features), fitted.predict_proba(DATA.features)
    )
    np.testing.assert_array_equal(read.cutpoints_, fitted.cutpoints_)


def test_rows_that_all_weigh_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="not all zero"):
        CumulativeLinkModel().fit(DATA.features, DATA.ranks, sample_weight=np.zeros(300))


@pytest.mark.parametrize("given", ["X_val", "y_val"])
def test_validation_rows_come_with_their_labels(given) -> None:
    values = {"X_val": DATA.features, "y_val": DATA.ranks}
    with pytest.raises(ValueError, match=r"pass both or neither"):
        CumulativeLinkModel().fit(DATA.features, DATA.ranks, **{given: values[given]})
