"""The main job on generated data: files in, a model out, through the command line.

The data are Friedman's function cut into 16 equally likely classes, so the best possible predictor
is known, and the table at the end shows how far the model is from it.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from echelon.data import Friedman, make_friedman
from echelon.evaluation.metrics import mae, ranked_probability_score, rmse

FOLDER = Path("build/demo")


def main() -> None:
    """Generate data, run the commands, print the comparison, write the page."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    write(make_friedman(30_000, seed=0), FOLDER / "train.csv")
    test = make_friedman(20_000, seed=1)
    write(test, FOLDER / "test.csv")
    write(test, FOLDER / "new.csv", target=False)

    start = time.perf_counter()
    run("fit", "train.csv", "--target", "grade", "--conformal", "0.05", "--out", "model.echelon")
    seconds = time.perf_counter() - start
    run("evaluate", "model.echelon", "test.csv", "--target", "grade", "--out", "run")
    run("predict", "model.echelon", "new.csv", "--out", "predictions.csv")
    for line in (FOLDER / "predictions.csv").read_text().splitlines()[:4]:
        print(line[:90], "...")
    print()
    run("report", "run", "--out", "report.html")
    found = json.loads((FOLDER / "run" / "metrics.json").read_text())
    compare(test, found, seconds)
    print(f"\na page to show to colleagues: {FOLDER / 'report.html'}")


def write(data: Friedman, path: Path, *, target: bool = True) -> None:
    """Write generated rows as a person's CSV file."""
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(1, 11)])
    if target:
        frame["grade"] = data.ranks + 1
    frame.to_csv(path, index=False, float_format="%.6f")


def run(*arguments: str) -> None:
    """Run the program in the demo's folder, showing the command and what it prints."""
    program = shutil.which("echelon", path=str(Path(sys.executable).parent)) or "echelon"
    print("$ echelon", *arguments, flush=True)
    done = subprocess.run(
        [program, *arguments], cwd=FOLDER, check=True, text=True, stdout=subprocess.PIPE
    )
    lines = done.stdout.splitlines()
    print("\n".join(lines if len(lines) < 9 else [*lines[:2], "...", *lines[-2:]]), "\n")


def compare(test: Friedman, found: dict[str, float], seconds: float) -> None:
    """Print the model's errors beside those of the best possible predictor."""
    truth, probabilities = test.ranks, test.bayes_probabilities
    best = {
        "mae": mae(truth, (probabilities.cumsum(axis=1) < 0.5).sum(axis=1)),
        "rmse": rmse(truth, np.rint(probabilities @ np.arange(test.num_classes))),
        "ranked_probability_score": ranked_probability_score(truth, probabilities),
    }
    print(f"fitted in {seconds:.1f} s")
    print(f"{'':<28}{'echelon':>9}{'the best possible':>20}{'above it':>11}")
    for name, floor in best.items():
        print(f"{name:<28}{found[name]:>9.3f}{floor:>20.3f}{found[name] / floor - 1:>11.1%}")


if __name__ == "__main__":
    main()
