"""The divisions of the accuracy benchmark: the same rows for all, columns as they are."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sets


@pytest.fixture
def eucalyptus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of its name with strings, gaps and equal rows."""
    generator = np.random.default_rng(0)
    n = 200
    labels = np.array(sets.ORDERS["eucalyptus"])[np.arange(n) % 5]
    frame = pd.DataFrame(
        {
            "response": labels,
            "height": np.arange(n) // 2,  # rows of a pair are equal but for the label
            "kind": generator.choice(["a", "b"], n // 2).repeat(2),
            "same": 1,
        }
    )
    frame["gaps"] = np.where(frame["height"] % 5 == 0, np.nan, 1.5)
    frame.loc[frame["height"] % 7 == 0, "kind"] = None
    (tmp_path / "tabular").mkdir()
    frame.to_csv(tmp_path / "tabular" / "eucalyptus.csv", index=False)
    monkeypatch.setenv("ECHELON_DATA", str(tmp_path))


@pytest.mark.usefixtures("eucalyptus")
def test_division_keeps_columns_twins_and_the_order_of_labels() -> None:
    division = sets.divide("eucalyptus", 1)
    assert division.num_classes == 5
    everything, test = division.everything.frame, division.test.frame
    assert set(everything["height"]).isdisjoint(test["height"])
    assert set(division.train.frame["height"]).isdisjoint(division.validation.frame["height"])
    assert len(test) / 200 == pytest.approx(sets.TEST_SHARE, abs=0.05)
    assert division.overlap == len(test) / len(everything)
    assert everything["kind"].isna().any()
    assert everything["gaps"].isna().any()
    assert set(division.everything.ranks) == set(range(5))


@pytest.mark.usefixtures("eucalyptus")
def test_fingerprint_is_of_the_rows_and_their_roles() -> None:
    division = sets.divide("eucalyptus", 0)
    assert sets.divide("eucalyptus", 0).fingerprint() == division.fingerprint()
    assert sets.divide("eucalyptus", 1).fingerprint() != division.fingerprint()
    other = division._replace(held=np.roll(division.held, 1))
    assert other.fingerprint() != division.fingerprint()


@pytest.mark.usefixtures("eucalyptus")
def test_who_takes_numbers_alone_gets_all_columns_as_numbers() -> None:
    rows = sets.divide("eucalyptus", 0).everything.frame
    encoder = sets.numbers(rows)
    found = encoder.transform(rows.assign(kind="never seen"))
    assert found.shape[1] == 5  # height, a mark of gaps, and three kinds, one of them a gap
    assert np.isfinite(found).all()
    assert np.allclose(encoder.transform(rows).mean(axis=0), 0)


def test_divisions_of_generated_rows_share_none() -> None:
    first, second = (sets.divide("friedman-tuning", number) for number in range(2))
    assert first.overlap == 0
    assert first.everything.frame.iloc[0].tolist() != second.everything.frame.iloc[0].tolist()
