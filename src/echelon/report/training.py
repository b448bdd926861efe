"""The chart of how models were trained: losses, validation scores, and the step that was kept."""

from typing import Any

import pandas as pd

from echelon.evaluation.metrics import METRICS
from echelon.report.palette import colours, dashes
from echelon.runs import Comparison
from echelon.runs.comparison import chosen_step
from echelon.runs.folder import Run

_STEPS = ("epoch", "round")
_VALIDATION = "validation_"


def training_chart(comparison: Comparison, alt: Any) -> tuple[Any, str]:
    """The chart, or None where nothing was trained in steps, and the words that go with it."""
    frame = _points(comparison)
    if frame.empty:
        who = "These models are" if len(comparison.methods) > 1 else "This model is"
        return None, f"{who} not fitted in steps that were written down: there is no curve to show."
    drawn = [name for name in comparison.methods if name in set(frame["method"])]
    charts = []
    for (step, what), part in frame.groupby(["step", "what"], sort=False):
        charts.append(_lines(part, drawn, str(step), str(what), len(comparison.methods) > 1, alt))
    chart = alt.vconcat(*charts).resolve_scale(color="shared") if len(charts) > 1 else charts[0]
    return chart, " ".join(_words(comparison, drawn))


def _title(key: str) -> str:
    """What a score of a history is, as an axis names it.

    Examples
    --------
    >>> _title("validation_ranked_probability_score"), _title("loss")
    ('validation RPS', 'training loss')
    """
    name = key.removeprefix(_VALIDATION)
    if name in METRICS:
        return f"validation {METRICS[name].title}"
    return "training loss" if key == "loss" else key.replace("_", " ")


def _points(comparison: Comparison) -> pd.DataFrame:
    rows = []
    for name in comparison.methods:
        for run in comparison.runs[name]:
            kept = chosen_step(run)
            for entry in run.history:
                step = next(word for word in _STEPS if word in entry)
                rows += [
                    {
                        "run": _run_name(name, run),
                        "method": name,
                        "step": step,
                        "number": entry[step],
                        "what": _title(key),
                        "value": value,
                        "kept": entry[step] == kept,
                    }
                    for key, value in entry.items()
                    if key != step and value is not None
                ]
    points: pd.DataFrame = pd.DataFrame(rows)
    return points


def _run_name(name: str, run: Run) -> str:
    seed = "" if run.config.seed is None else f", seed {run.config.seed}"
    return f"{name}{seed}, division {run.config.split}"


def _lines(
    part: pd.DataFrame, drawn: list[str], step: str, what: str, several: bool, alt: Any
) -> Any:
    of, dashed = colours(drawn), dashes(drawn)
    legend = alt.Legend(orient="top", columns=2, labelLimit=0, symbolType="stroke")
    legend = legend if several else None
    base = alt.Chart(part).encode(
        x=alt.X("number:Q", title=step, axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("value:Q", title=what, scale=alt.Scale(zero=False)),
        color=alt.Color(
            "method:N", title=None, legend=legend,
            scale=alt.Scale(domain=drawn, range=[of[name] for name in drawn]),
        ),
        detail="run:N",
        tooltip=["run", alt.Tooltip("number", title=step), alt.Tooltip("value", format=".4f")],
    )  # fmt: skip
    is_alone = bool(part.groupby("run").size().max() == 1)
    lines = base.mark_line(point=is_alone, strokeWidth=1.5)
    if len(set(dashed.values())) > 1:
        lines = lines.encode(
            strokeDash=alt.StrokeDash(
                "method:N", legend=None,
                scale=alt.Scale(domain=drawn, range=[list(dashed[name]) for name in drawn]),
            )
        )  # fmt: skip
    if not part["kept"].any():
        return lines.properties(height=180)
    kept = base.transform_filter(alt.datum.kept).mark_point(
        filled=True, size=90, shape="diamond", opacity=1
    )
    return (lines + kept).properties(height=180)


def _words(comparison: Comparison, drawn: list[str]) -> list[str]:
    said = []
    for name in drawn:
        runs = [run for run in comparison.runs[name] if run.history]
        step = next(word for word in _STEPS if word in runs[0].history[0])
        kept, last = chosen_step(runs[0]), int(runs[0].history[-1][step])
        of = f"{step} {kept} of {last}" if kept is not None else f"the last {step}, {last}"
        also = f" in its first run of {len(runs)}" if len(runs) > 1 else ""
        said.append(f"{name} kept {of}{also}.")
    if any(chosen_step(run) is not None for name in drawn for run in comparison.runs[name]):
        said.append("A diamond marks what was kept.")
    if len(drawn) > 1:
        said.append("Training losses of different methods have different scales.")
    return said
