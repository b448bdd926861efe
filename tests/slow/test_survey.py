"""A survey export beside the same table cleaned by hand, and a large table looked at in time."""

import time
from pathlib import Path

import numpy as np
import pandas as pd

import echelon
from echelon.cli.reading import DataDescription
from tests.survey import CLASSES, TARGET, make_survey


def test_the_export_is_worth_as_much_as_the_clean_table(tmp_path: Path) -> None:
    survey = make_survey()
    path = survey.write(tmp_path)
    described = DataDescription(path, TARGET, CLASSES)
    rows = described.labelled(described.table())
    ranks = echelon.as_ranks(rows.labels, CLASSES)
    clean = survey.clean[survey.ranks >= 0]
    assert (survey.ranks[survey.ranks >= 0] == ranks).all()
    gaps = []
    for seed in range(5):
        held = np.random.default_rng(seed).random(len(ranks)) < 0.25
        errors = []
        for table in (rows.features, clean):
            model = echelon.OrdinalBoosting(random_state=seed).fit(table[~held], ranks[~held])
            errors.append(np.abs(model.predict(table[held]) - ranks[held]).mean())
        gaps.append(errors[0] - errors[1])
    print(f"MAE of the export less that of the clean table: {np.round(gaps, 4)}")
    assert np.mean(gaps) <= 2 * np.std(gaps, ddof=1) / np.sqrt(5) + 1e-9


def test_a_hundred_thousand_rows_are_looked_at_within_ten_seconds(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.normal(size=(100_000, 30)).round(4)).rename(columns="x{}".format)
    for i in range(18):
        frame[f"c{i}"] = generator.choice(list("abcdefgh"), 100_000)
    frame["id"] = [f"R{i}" for i in range(100_000)]
    frame["y"] = generator.integers(1, 6, 100_000)
    frame.to_csv(tmp_path / "big.csv", index=False)
    began = time.process_time()
    DataDescription(tmp_path / "big.csv", "y").check()
    assert time.process_time() - began < 10
