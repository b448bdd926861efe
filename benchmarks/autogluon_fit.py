"""What a Python with AutoGluon runs for the accuracy benchmark; it needs nothing of echelon.

The folder that is named holds the rows and the settings; the probabilities are written into it.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
from autogluon.tabular import TabularPredictor


def main(folder: Path) -> None:
    """Fit the training rows, and write what is found for the test rows."""
    settings = json.loads((folder / "settings.json").read_text())
    strings = dict.fromkeys(settings["strings"], str)
    train, validation, test = (
        # An empty cell is a gap; the word "none" is not.
        pd.read_csv(folder / f"{name}.csv", dtype=strings, keep_default_na=False, na_values=[""])
        for name in ("train", "validation", "test")
    )
    predictor = TabularPredictor(
        "rank", problem_type="multiclass", eval_metric="log_loss", path=str(folder / "models"),
        verbosity=0,
    )  # fmt: skip
    is_medium = settings["preset"] == "medium_quality"
    rows: dict[str, Any] = {"train_data": train, "tuning_data": validation}
    if not is_medium:  # it divides all rows into folds by itself
        rows = {"train_data": pd.concat([train, validation], ignore_index=True)}
    started = time.perf_counter()
    predictor.fit(
        **rows, presets=settings["preset"], time_limit=settings["seconds"],
        num_cpus=settings["threads"], num_gpus=0,
    )  # fmt: skip
    if is_medium:  # what the validation rows chose is fitted to all rows
        predictor.refit_full(set_best_to_refit_full=True)
    seconds = time.perf_counter() - started
    found = predictor.predict_proba(test.drop(columns="rank"))
    (folder / "found.json").write_text(
        json.dumps(
            {
                "probabilities": found.to_numpy().tolist(),
                "classes": [int(one) for one in found.columns],
                "seconds": seconds,
                "models": len(predictor.model_names()),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
