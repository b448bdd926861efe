"""The rate of false alarms over 200 draws of training rows and new ones."""

import math

import pytest

from tests.simulated_drift import alarm_rate


@pytest.mark.parametrize(("training", "rows"), [(800, 400), (300, 2000)])
def test_data_of_the_same_distribution_alarm_as_often_as_the_level_says(
    training: int, rows: int
) -> None:
    rate = alarm_rate(200, training, rows)
    error = math.sqrt(0.05 * 0.95 / 200)
    print(f"\n{training} and {rows} rows: {rate:.3f} alarms, 0.05 ± {error:.3f} expected")
    assert 0.05 - 3 * error <= rate <= 0.05 + 3 * error
