"""The figures of the pages on ideas, drawn from small fits that anyone can repeat."""

import numpy as np
import torch
from drawing import Drawing

import echelon
from echelon.evaluation.calibration import reliability
from echelon.evaluation.conformal import calibration_scores, threshold

_GRADES = ["poor", "fair", "good", "very good", "excellent"]


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def corn() -> Drawing:
    """Which rows train which task of CORN, and how its answers are multiplied."""
    method = echelon.method("corn", num_classes=5)
    ranks = torch.tensor([0, 1, 1, 2, 3, 4, 4])
    targets, active = method.tasks(ranks)
    drawing = Drawing(
        760, 330, 416,
        "Left: seven rows and four tasks; a row takes part in the tasks up to its own rank. Right: "
        "four conditional probabilities, and the exceedances that are their products.",
    )  # fmt: skip
    drawing.word(24, 34, "Training: a task asks only rows that got there", weight="bold")
    for k in range(4):
        x = 152 + 62 * k
        drawing.word(x + 25, 62, "more than", "muted", 10, "middle")
        drawing.word(x + 25, 77, f"{_GRADES[k]}?", "ink", 12, "middle")
    for i, rank in enumerate(ranks.tolist()):
        y = 88 + 27 * i
        drawing.word(140, y + 16, _GRADES[rank], "ink", 13, "end")
        for k in range(4):
            x = 152 + 62 * k
            if not active[i, k]:
                drawing.box(x, y, 50, 22, "ground", "rule")
                continue
            yes = bool(targets[i, k])
            drawing.box(x, y, 50, 22, "first" if yes else "pale")
            drawing.word(x + 25, y + 16, "yes" if yes else "no", "ground" if yes else "ink", 12,
                         "middle")  # fmt: skip
    drawing.word(152, 300, "empty: the row does not train this task", "muted", 12)

    logits = torch.tensor([[2.2, 1.1, 0.0, -0.8]])
    conditional = torch.sigmoid(logits)[0].tolist()
    above = method.curve(logits).exceedance[0].tolist()
    drawing.word(430, 34, "Prediction: the answers are multiplied", weight="bold")
    drawing.word(560, 70, "given it got there", "muted", 12, "middle")
    drawing.word(690, 70, "at all", "muted", 12, "middle")
    for k in range(4):
        y = 88 + 47 * k
        drawing.word(430, y + 20, f"> {_GRADES[k]}", "ink", 13)
        drawing.box(530, y, 60, 30, "pale")
        drawing.word(560, y + 20, _percent(conditional[k]), "ink", 14, "middle")
        drawing.line([(594, y + 15), (656, y + 15)], "muted", 1.5)
        drawing.box(660, y, 60, 30, "first")
        drawing.word(690, y + 20, _percent(above[k]), "ground", 14, "middle")
        if k:
            drawing.line([(690, y - 15), (690, y - 2)], "muted", 1.5)
            drawing.word(700, y - 5, "times", "muted", 11)
    drawing.word(430, 300, "a product never rises, so no curve crosses", "second", 13)
    return drawing


def crossings() -> Drawing:
    """Four answers that were learnt apart, one of them a contradiction, and the repair."""
    from sklearn.tree import DecisionTreeClassifier

    data = echelon.data.make_friedman(400, num_classes=5, noise=2.0, seed=3)
    fresh = echelon.data.make_friedman(400, num_classes=5, noise=2.0, seed=4)
    apart = []
    for k in range(4):
        tree = DecisionTreeClassifier(min_samples_leaf=15, random_state=0)
        tree.fit(data.features, data.ranks > k)
        apart.append(tree.predict_proba(fresh.features)[:, 1].clip(0.02, 0.98))
    raw = np.stack(apart, 1)  # (400, 4): P(y > k), each by a tree of its own
    curve = echelon.method("ornn", num_classes=5).curve(torch.logit(torch.from_numpy(raw)))
    row = int(curve.crossings().argmax())
    mended = curve.exceedance[row].numpy()
    share = float((curve.crossings() > 0).double().mean())
    drawing = Drawing(
        760, 300, 390,
        "Left: four probabilities of more than each grade, of which a later one is above an "
        "earlier one. Right: the same four in falling order.",
    )  # fmt: skip
    titles = ("Four answers, learnt apart", "The same answers, sorted")
    for left, title, values in zip((60, 440), titles, (raw[row], mended), strict=True):
        _axes(drawing, left, title)
        places = [left + 35 + 70 * k for k in range(4)]
        heights = [_height(value) for value in values]
        colour = "second" if left == 60 else "first"
        drawing.line(list(zip(places, heights, strict=True)), colour, 2.5)
        for k, (x, y) in enumerate(zip(places, heights, strict=True)):
            drawing.dot(x, y, 5, colour)
            drawing.word(x + 8, y - 8, _percent(values[k]), colour, 13)
            drawing.word(x, 252, f"> {_GRADES[k]}", "ink", 12, "middle")
    words = f"{_percent(share)} of 400 new rows contradict themselves"
    drawing.word(24, 284, words, "muted", 13)
    drawing.word(404, 284, "sorting keeps how many are above 50 %", "muted", 13)
    return drawing


def _height(share: float) -> float:
    return 230 - 160 * float(share)


def _axes(drawing: Drawing, left: float, title: str) -> None:
    """Lines at 0, 50 and 100 % from `left` on, under a title."""
    drawing.word(left - 36, 34, title, weight="bold")
    for share in (0.0, 0.5, 1.0):
        drawing.line([(left, _height(share)), (left + 280, _height(share))], "rule", 1)
        drawing.word(left - 6, _height(share) + 5, _percent(share), "muted", 12, "end")


def calibration() -> Drawing:
    """What a model of few rows says and what happens, before and after a temperature."""
    small = echelon.data.make_friedman(45, num_classes=5, noise=3.0, seed=0)
    held = echelon.data.make_friedman(1000, num_classes=5, noise=3.0, seed=1)
    fresh = echelon.data.make_friedman(20_000, num_classes=5, noise=3.0, seed=2)
    model = echelon.CumulativeLinkModel().fit(small.features, small.ranks)
    before = reliability(fresh.ranks, model.predict_proba(fresh.features))
    model.calibrate(held.features, held.ranks, "temperature")
    after = reliability(fresh.ranks, model.predict_proba(fresh.features))
    drawing = Drawing(
        760, 320, 390,
        "Two plots of how often y > k happened against how likely the model said it was. Left, "
        "too sure: the line is flatter than the diagonal. Right, after calibration: on it.",
    )  # fmt: skip
    titles = ("Fitted on 45 rows: too sure", "After a temperature")
    colours = ("second", "first")
    for left, title, colour, table in zip((60, 440), titles, colours, (before, after), strict=True):
        _axes(drawing, left, title)
        drawing.line([(left, _height(0)), (left + 280, _height(1))], "muted", 1.5, "4 4")
        points = [
            (left + 280 * float(said), _height(happened))
            for said, happened in zip(table.predicted, table.observed, strict=True)
        ]
        drawing.line(points, colour, 2.5)
        for x, y in points:
            drawing.dot(x, y, 4, colour)
        for share in (0.0, 0.5, 1.0):
            drawing.word(left + 280 * share, 250, _percent(share), "muted", 12, "middle")
        drawing.word(left - 36, 58, "how often it happens", "ink", 12)
        drawing.word(left + 140, 272, "how likely the model says it is", "ink", 12, "middle")
    drawing.word(24, 304, "bins of P(y > k) on 20,000 new rows", "muted", 12)
    drawing.word(404, 304, "dashed: what is said, happens", "muted", 12)
    return drawing


def _right(probability: float) -> float:
    return 40 + 560 * probability


def conformal() -> Drawing:
    """The scores of calibration rows with their limit, and the intervals that it gives."""
    data = echelon.data.make_friedman(1400, num_classes=5, noise=2.0, seed=0)
    model = echelon.CumulativeLinkModel().fit(data.features[:600], data.ranks[:600])
    held, truth = data.features[600:1000], data.ranks[600:1000]
    scores = calibration_scores(truth, model.predict_proba(held), "probability")
    limit = float(threshold(scores, 0.9))
    model.conformalize(held, truth)
    rows = np.arange(1000, 1012)
    intervals = model.predict_interval(data.features[rows], coverage=0.9)
    drawing = Drawing(
        760, 330, 390,
        "Left: a histogram of how probable the true class of 400 rows was, with a limit that nine "
        "of ten are above. Right: intervals of twelve new rows, with their true classes.",
    )  # fmt: skip
    drawing.word(24, 34, "400 rows: how probable was the truth?", weight="bold")
    below_mode = scores[np.isfinite(scores)]
    counts, edges = np.histogram(below_mode, bins=14, range=(0, 0.42))
    for count, edge in zip(counts, edges, strict=False):
        tall, middle = 160 * count / counts.max(), edge + edges[1] / 2
        drawing.box(_right(edge), 240 - tall, 12, tall, "first" if middle > limit else "second")
    drawing.line([(36, 240), (276, 240)], "muted", 1)
    drawing.line([(_right(limit), 66), (_right(limit), 250)], "second", 2, "4 4")
    drawing.word(_right(limit) + 6, 76, "nine of ten are right of this", "second", 12)
    for share in (0.0, 0.1, 0.2, 0.3, 0.4):
        drawing.word(_right(share), 262, _percent(share), "muted", 12, "middle")
    first = len(scores) - len(below_mode)
    drawing.word(282, 150, f"and {first} rows", "first", 12)
    drawing.word(282, 166, "whose truth was", "first", 12)
    drawing.word(282, 182, "most probable", "first", 12)

    drawing.word(400, 34, "New rows: all classes above the limit", weight="bold")
    for k, grade in enumerate(_GRADES):
        y = 228 - 40 * k
        drawing.line([(474, y), (744, y)], "rule", 1)
        drawing.word(466, y + 5, grade, "ink", 12, "end")
    for i, (row, (first, last)) in enumerate(zip(rows, intervals, strict=True)):
        x, rank = 486 + 22 * i, int(data.ranks[row])
        top, bottom = 228 - 40 * int(last), 228 - 40 * int(first)
        drawing.box(x - 5, top - 8, 10, bottom - top + 16, "pale")
        inside = int(first) <= rank <= int(last)
        drawing.dot(x, 228 - 40 * rank, 4.5, "first" if inside else "second")
    drawing.word(400, 290, "bars: the interval; dots: what was true", "muted", 12)
    return drawing
