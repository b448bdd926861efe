"""The sets of the accuracy benchmark: which rows are for training, for validation and for testing.

A division of a set is the same for every contestant. Columns are kept as they are, strings,
categories and gaps included; what a contestant cannot read is encoded for it by the functions at
the end of this file, from the rows that it is fitted to.
"""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from echelon.data import make_friedman
from echelon.data.schema import TableSchema
from echelon.data.splits import hold_out

TUNING = (
    "affairs", "auto_ord", "bostonhousing_ord", "winequality-white", "ESL", "LEV", "eucalyptus",
)  # fmt: skip
REPORTED = ("cement_strength", "skill", "kinematics", "friedman")
GENERATED = {"friedman": 70_000, "friedman-tuning": 80_000}  # the first seed of each
SETS = (*TUNING, "friedman-tuning", *REPORTED)
GROUPS = {"tuning": TUNING, "reported": REPORTED, "all": SETS}

ORDERS = {"eucalyptus": ("none", "low", "average", "good", "best")}  # of labels that are strings
TEST_SHARE, VALIDATION_SHARE = 0.25, 0.15
FRIEDMAN_ROWS, FRIEDMAN_TEST_ROWS = 10_000, 50_000

Ranks = NDArray[np.int64]


class Rows(NamedTuple):
    """Some rows: their columns, and their ranks 0..K-1, shape (n,)."""

    frame: pd.DataFrame
    ranks: Ranks


class Division(NamedTuple):
    """The rows of one division of a set.

    `everything` are the training and the validation rows; `held`, shape (n,), marks the latter.
    `overlap` is the ratio of test rows to the others where the divisions of a set share rows, and 0
    where every division has rows of its own.
    """

    set_name: str
    number: int
    everything: Rows
    held: NDArray[np.bool_]
    test: Rows
    num_classes: int
    overlap: float

    @property
    def train(self) -> Rows:
        """The rows that a setting is fitted to before it is chosen."""
        return Rows(self.everything.frame[~self.held], self.everything.ranks[~self.held])

    @property
    def validation(self) -> Rows:
        """The rows that settings are chosen on."""
        return Rows(self.everything.frame[self.held], self.everything.ranks[self.held])

    def fingerprint(self) -> str:
        """A digest of all rows and their roles: results of other rows have another."""
        digest = hashlib.sha256()
        for rows in (self.train, self.validation, self.test):
            digest.update(pd.util.hash_pandas_object(rows.frame, index=False).to_numpy().tobytes())
            digest.update(rows.ranks.tobytes() + b"|")
        return digest.hexdigest()[:16]


def divide(name: str, number: int) -> Division:
    """The division of this number of a set; it also seeds whatever is random in a fit."""
    if name in GENERATED:
        seed = GENERATED[name] + 2 * number
        train = make_friedman(FRIEDMAN_ROWS, seed=seed)
        test = make_friedman(FRIEDMAN_TEST_ROWS, seed=seed + 1)
        everything = Rows(_named(train.features), train.ranks)
        tested = Rows(_named(test.features), test.ranks)
        num_classes, overlap = int(train.ranks.max()) + 1, 0.0
    else:
        rows, num_classes = read(name)
        is_test = _held(rows, TEST_SHARE, [number, 17])
        everything = Rows(rows.frame[~is_test], rows.ranks[~is_test])
        tested = Rows(rows.frame[is_test], rows.ranks[is_test])
        overlap = len(tested.ranks) / len(everything.ranks)
    held = _held(everything, VALIDATION_SHARE, [number, 18])
    return Division(name, number, everything, held, tested, num_classes, overlap)


def read(name: str) -> tuple[Rows, int]:
    """The rows of a real table and how many classes it has."""
    folder = os.environ.get("ECHELON_DATA")
    if folder is None:
        raise SystemExit("set ECHELON_DATA to the folder with the real tables")
    frame = pd.read_csv(Path(folder) / "tabular" / f"{name}.csv")
    response = frame.pop("response")
    order = list(ORDERS.get(name, np.unique(response).tolist()))
    ranks = response.map({value: rank for rank, value in enumerate(order)}).to_numpy(np.int64)
    numeric = _numeric(frame)
    frame = frame.astype(dict.fromkeys(numeric, np.float64) | dict.fromkeys(_strings(frame), "str"))
    return Rows(frame, ranks), len(order)


def _named(features: NDArray[Any]) -> pd.DataFrame:
    names = [f"x{number}" for number in range(1, features.shape[1] + 1)]
    return pd.DataFrame(features.astype(np.float64), columns=names)


def _held(rows: Rows, share: float, seed: list[int]) -> NDArray[np.bool_]:
    """Marks a share of the rows, classes in their shares; rows that are equal stay together."""
    table = TableSchema.of(rows.frame).read(rows.frame)
    return hold_out(table, rows.ranks, share, generator=np.random.default_rng(seed))


def _numeric(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if pd.api.types.is_numeric_dtype(frame[name])]


def _strings(frame: pd.DataFrame) -> list[str]:
    numeric = set(_numeric(frame))
    return [name for name in frame if name not in numeric]


# ---- encodings for those that need one -----------------------------------------------------------


def numbers(frame: pd.DataFrame) -> Pipeline:
    """An encoder, fitted to these rows, that makes every column numbers of mean 0 and spread 1.

    Gaps take the place of the median and are marked by a column of their own; strings are one-hot,
    and those that the rows lack are all zeros. Columns without spread are left out.
    """
    kinds = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), _numeric(frame)),
            (
                "strings",
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                _strings(frame),
            ),
        ]
    )
    return make_pipeline(kinds, VarianceThreshold(), StandardScaler()).fit(frame)


def categories(frame: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Strings as pandas' categories, those of the rows `known`; others become gaps."""
    found = {}
    for name in _strings(frame):
        kept = sorted(known[name].dropna().unique())
        found[name] = pd.Categorical(frame[name].where(frame[name].isin(kept)), categories=kept)
    return frame.assign(**found)


def filled_strings(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Gaps among the strings as a string of their own, and which columns are strings."""
    names = _strings(frame)
    return frame.assign(**{name: frame[name].fillna("(none)") for name in names}), names
