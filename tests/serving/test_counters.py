"""Counters: labels of any kind stay on their line."""

from echelon.serving.counters import Counters, counter, gauge


def test_labels_are_escaped() -> None:
    counters = Counters()
    counters.add_predictions(['a "b"\nc\\', "x"], outside=1)
    lines = counters.lines()
    assert r'echelon_predicted_rows_total{class="a \"b\"\nc\\"} 1' in lines
    assert "echelon_outside_rows_total 1" in lines


def test_seconds_lie_in_the_first_bucket_that_holds_them() -> None:
    counters = Counters()
    for seconds in (0.001, 0.0011, 99.0):
        counters.add_request("/predict", 200, received=1, sent=2, seconds=seconds)
    buckets = [line.rsplit(" ", 1) for line in counters.lines() if "_bucket" in line]
    assert [int(count) for _, count in buckets][:2] == [1, 2]
    assert buckets[-1][0].endswith('le="+Inf"}')
    assert int(buckets[-1][1]) == 3


def test_values_keep_their_digits() -> None:
    assert gauge("t", "Time.", 1_790_000_000.5)[-1] == "t 1790000000.500"
    assert counter("n", "Number.", 12_345_678)[-1] == "n 12345678"
