"""The figures of the site, drawn from what echelon computes: ``make figures`` writes them.

Each figure is a function that gives a :class:`Drawing`; its name is the name of the file in
``docs/figures``, and with ``-narrow`` that for a narrow screen. A test draws them again and
compares.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import ideas
from drawing import Drawing

import echelon

FOLDER = Path(__file__).parent.parent / "figures"
_GRADES = ["poor", "fair", "good", "very good", "excellent"]


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def curve() -> Drawing:
    """One row of a model: its exceedances, its probabilities, and what is read off them."""
    data = echelon.data.make_friedman(2000, num_classes=5, noise=2.0, seed=0)
    model = echelon.CumulativeLinkModel().fit(data.features[:1000], data.ranks[:1000])
    model.conformalize(data.features[1000:], data.ranks[1000:])
    middle = np.flatnonzero(model.predict(data.features[1000:], decision="mean") == 2)
    row = data.features[1000 + middle[0]][None]
    above = model.predict_exceedance(row)[0]  # (4,)
    shares = model.predict_proba(row)[0]  # (5,)
    median = int(model.predict(row, decision="median")[0])
    mean = float(shares @ np.arange(5))
    low, high = model.predict_interval(row, coverage=0.9)[0]
    drawing = Drawing(
        760, 306, 388,
        "Left: a falling curve of P(y > k) for four thresholds. Right: the five probabilities that "
        "belong to it, with the median, the mean and an interval.",
    )  # fmt: skip
    top, bottom = 70, 230

    def height(share: float) -> float:
        return bottom - share * (bottom - top)

    drawing.word(24, 34, "The curve: how likely is more than this?", weight="bold")
    for share in (0.0, 0.5, 1.0):
        drawing.line([(60, height(share)), (350, height(share))], "rule", 1)
        drawing.word(54, height(share) + 5, _percent(share), "muted", 12, "end")
    places = [95 + 75 * k for k in range(4)]
    drawing.line([(x, height(p)) for x, p in zip(places, above, strict=True)], "first", 2.5)
    for x, p, grade in zip(places, above, _GRADES, strict=False):
        drawing.dot(x, height(p), 5, "first")
        drawing.word(x + 8, height(p) - 8, _percent(p), "first", 13)
        drawing.word(x, bottom + 22, f"> {grade}", "ink", 12, "middle")

    drawing.word(400, 34, "What is read off it", weight="bold")
    bars = [430 + 62 * k for k in range(5)]
    for k, (x, share) in enumerate(zip(bars, shares, strict=True)):
        tall = share * 200
        drawing.box(x - 22, bottom - tall, 44, tall, "first" if k == median else "pale")
        drawing.word(x, bottom - tall - 7, _percent(share), "ink", 13, "middle")
        drawing.word(x, bottom + 22, _GRADES[k], "ink", 12, "middle")
    drawing.line([(400, bottom), (710, bottom)], "muted", 1)
    left, right = bars[int(low)] - 24, bars[int(high)] + 24
    drawing.line([(left, 262), (left, 270), (right, 270), (right, 262)], "second", 2)
    words = f"interval: {_GRADES[int(low)]} to {_GRADES[int(high)]}, for 90 % of all rows"
    drawing.word(555, 290, words, "second", 13, "middle")
    drawing.word(400, 58, f"label: {_GRADES[median]} (the median)", "first", 13)
    drawing.word(736, 58, f"mean rank {mean:.2f}", "muted", 13, "end")
    return drawing


FIGURES: dict[str, Callable[[], Drawing]] = {
    "curve": curve,
    "corn": ideas.corn,
    "crossings": ideas.crossings,
    "calibration": ideas.calibration,
    "conformal": ideas.conformal,
}


def drawn() -> dict[str, str]:
    """Every figure for a wide and for a narrow screen, by the name of its file."""
    drawings = {name: draw() for name, draw in FIGURES.items()}
    wide = {f"{name}.svg": drawing.text() for name, drawing in drawings.items()}
    return wide | {f"{name}-narrow.svg": drawing.narrow() for name, drawing in drawings.items()}


def main() -> None:
    """Write every figure."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawn().items():
        path = FOLDER / name
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(FOLDER.parent.parent)}")


if __name__ == "__main__":
    main()
