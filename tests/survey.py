"""A survey export as people have it, and the same table as a careful person would clean it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

CLASSES = [
    "Strongly disagree", "Disagree, somewhat", "Neither, nor", "Agree, somewhat", "Strongly agree",
]  # fmt: skip
TARGET = "The service, all in all, was good"
NO_ANSWER = 99


@dataclass(frozen=True)
class Survey:
    """`written` has strings as in the export, `clean` numbers, and `ranks` -1 for no label."""

    written: pd.DataFrame
    clean: pd.DataFrame
    ranks: np.ndarray

    def write(self, folder: Path, rows: np.ndarray | slice = slice(None), name: str = "survey.csv"):
        """Write the export, or some rows of it, beside a file with the classes."""
        (folder / "classes.txt").write_text("\n".join(CLASSES) + "\n", encoding="utf-8")
        path = folder / name
        self.written.iloc[rows].to_csv(path, sep=";", index=False, encoding="utf-8-sig")
        return path


def make_survey(n: int = 1100, seed: int = 0) -> Survey:
    generator = np.random.default_rng(seed)
    scales = generator.integers(1, 6, (n, 16)).astype(float)
    income = np.exp(generator.normal(8, 0.5, n)).round(2)
    discount = generator.uniform(0, 40, n).round(1)
    wait = generator.exponential(6, n).round(1)
    visited = np.datetime64("2023-01-01") + generator.integers(0, 700, n)
    member = generator.random(n) < 0.4
    region = generator.choice(["North", "South", "East", "West"], n)
    signal = (
        0.5 * scales[:, 0] + 0.4 * scales[:, 1] + 0.3 * scales[:, 2] - 0.15 * wait
        + 0.04 * discount + 0.5 * np.log(income) + 0.8 * member + 0.6 * (region == "North")
    )  # fmt: skip
    latent = signal + generator.logistic(0, 0.6, n)
    ranks = np.searchsorted(np.quantile(latent, [0.1, 0.3, 0.55, 0.8]), latent)
    refused = generator.random((n, 16)) < 0.04
    clean = pd.DataFrame(
        {f"q{i}": np.where(refused[:, i], np.nan, scales[:, i]) for i in range(16)}
    )
    clean = clean.assign(
        income=income, discount=discount, wait=wait, member=member.astype(float), region=region,
        visited=pd.Series(visited),
    )  # fmt: skip
    clean.loc[generator.random(n) < 0.05, "wait"] = np.nan
    written = pd.DataFrame({"Respondent ID": [f"R-{i:06d}" for i in generator.permutation(n)]})
    written["No."] = np.arange(1, n + 1).astype(str)
    for i in range(16):
        shown = np.where(refused[:, i], NO_ANSWER, scales[:, i]).astype(int)
        written[f"q{i}"] = shown.astype(str)
    written["income"] = [
        f"{one:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") for one in income
    ]
    written["discount"] = [f"{one:.1f} %".replace(".", ",") for one in discount]
    written["wait"] = [
        "" if one != one else f"{one:.1f}".replace(".", ",") for one in clean["wait"]
    ]
    written["member"] = np.where(member, "Ja", "Nein")
    written["region"] = region
    written["visited"] = pd.Series(visited).dt.strftime("%d.%m.%Y")
    words = [
        "staff",
        "room",
        "price",
        "queue",
        "music",
        "light",
        "coffee",
        "table",
        "parking",
        "toilet",
        "garden",
        "menu",
    ]
    written["comment"] = [
        " ".join(generator.choice(words, 6)) + f"; no. {i}, really" for i in range(n)
    ]
    written["wave"] = "2024"
    for i in range(4):
        written[f"weight {i}"] = [f"{one:.3f}".replace(".", ",") for one in generator.random(n)]
        clean[f"weight {i}"] = [float(one.replace(",", ".")) for one in written[f"weight {i}"]]
    labels = np.array(CLASSES, dtype=object)[ranks]
    odd = generator.random(n)
    labels = np.where(odd < 0.1, [one.upper() for one in labels], labels)
    labels = np.where(odd > 0.95, [f" {one} " for one in labels], labels)
    missing = generator.random(n) < 0.03
    written[TARGET] = np.where(missing, "", labels)
    return Survey(written, clean, np.where(missing, -1, ranks))
