"""A small task, and who makes its runs: in this process, and with one epoch each."""

import numpy as np
import pandas as pd

from echelon.data import make_friedman
from echelon.experiments import Executor, table_task

QUICK = {"settings": {"max_epochs": 1}, "device": "cpu"}
HERE = Executor(workers=1)


def task(**options):
    data = make_friedman(300, num_classes=3, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    frame["kind"] = np.where(frame["V3"] > 0.5, "big", "small")
    labels = np.array(["low", "mid", "top"])[data.ranks]
    return table_task("made up", frame, labels, classes=["low", "mid", "top"], **options)
