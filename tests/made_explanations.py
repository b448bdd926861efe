"""Documents that explain made-up runs, for tests of folders and pages."""

import numpy as np
import pandas as pd

from echelon.evaluation.explanation import explain


def made_explanation(
    num_classes: int, rows: list[int], *, names: tuple[str, str, str, str] | None = None,
    classes: list | None = None,
) -> dict:  # fmt: skip
    """Of a function of a number, a date, a category and a text; for some rows by their numbers."""
    number, date, category, text = names or ("size", "day", "colour", "review")
    generator = np.random.default_rng(0)
    n = max(300, max(rows) + 1)
    frame = pd.DataFrame(
        {
            number: generator.random(n),
            date: pd.Timestamp("2020-01-01")
            + pd.to_timedelta(generator.integers(0, 900, n), unit="D"),
            category: generator.choice([f"{category} red", "blue", "green"], size=n),
            text: [f"{text} word{i} fine" for i in range(n)],
        }
    )
    frame.loc[::9, number] = np.nan
    frame.loc[::7, category] = None

    def predict(asked: pd.DataFrame) -> np.ndarray:
        days = (asked[date] - pd.Timestamp("2020-01-01")).dt.days / 900
        p = 0.1 + 0.4 * asked[number].fillna(0.3) + 0.2 * days + 0.2 * (asked[category] == "blue")
        p = np.asarray(p + 0.05 * asked[text].str.contains("fine"), dtype=np.float64)
        places = np.arange(num_classes)
        away = (places - p[:, None] * num_classes) ** 2
        weight = np.exp(-away / 2)
        return weight / weight.sum(axis=1, keepdims=True)

    found = explain(
        predict, frame, classes=classes or list(range(num_classes)), kinds={text: "text"},
        texts=[text], rows=rows, repeats=2,
    )  # fmt: skip
    return found.document()
