"""The HTML page: one file with everything in it, which asks nothing of any network."""

import base64
import html
import io
import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from echelon.evaluation.exploring import explored_orders
from echelon.evaluation.metrics import shown_metrics
from echelon.report.charts import Titled, all_charts, altair
from echelon.report.explanation import explained_section
from echelon.report.groups import Groups
from echelon.runs import Comparison, read_runs
from echelon.storage.atomic import replacing, replacing_text, require_writable, write_text

_THUMBNAIL = 160  # pixels
_COEFFICIENTS = 20
_IMAGES = ("png", "svg")
_EXPOSE = "window.vegaEmbed = vegaEmbed;"  # what the page's own script calls
_IMAGE_WIDTH = 520


def write_page(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the page about the runs in a folder.

    Parameters
    ----------
    folder : path
        A run folder, or a folder of them.
    out : path, optional
        The page; ``report.html`` in the folder without it.
    """
    comparison = Comparison.of(read_runs(folder))
    path = Path(out) if out is not None else Path(folder) / "report.html"
    require_writable(path)
    write_text(path, render(comparison))
    return path


def page_text(folder: str | Path) -> str:
    """The page about the runs in a folder, as :func:`write_page` would write it."""
    return render(Comparison.of(read_runs(folder)))


def write_charts(folder: str | Path, out: str | Path, image: str = "svg") -> list[Path]:
    """Write every chart of the page as an image.

    Parameters
    ----------
    folder : path
        As for :func:`write_page`.
    out : path
        The folder for the images; made if it is not there.
    image : {"svg", "png"}
    """
    if image not in _IMAGES:
        raise ValueError(f"image must be one of {', '.join(_IMAGES)}; got {image!r}")
    comparison = Comparison.of(read_runs(folder))
    made = all_charts(comparison) | explained_section(comparison).charts
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, titled in made.items():
        path = out / f"{name}.{image}"
        options = {"scale_factor": 2.0} if image == "png" else {}
        with replacing(path) if image == "png" else replacing_text(path) as stream:
            _with_width(titled.chart, _IMAGE_WIDTH).save(stream, format=image, **options)
        paths.append(path)
    return paths


def render(comparison: Comparison) -> str:
    """The page as text."""
    altair()
    import vl_convert

    explained = explained_section(comparison)
    made = all_charts(comparison) | explained.charts
    groups = Groups.of(comparison.classes)
    specs = {name: _spec(titled) for name, titled in made.items()}
    data = {
        "charts": specs, "rows": _explored_rows(comparison, groups), "classes": comparison.classes,
        "groups": groups.names, "group": groups.of_rank.tolist(), "note": groups.note,
        "reasons": explained.reasons,
    }  # fmt: skip
    parts = {
        "TITLE": _title(comparison),
        "ANSWER": "".join(f"<li>{_text(sentence)}</li>" for sentence in comparison.answer()),
        "METHODS": _methods_table(comparison),
        "VERDICTS": "".join(f"<li>{_text(sentence)}</li>" for sentence in comparison.sentences()),
        "COEFFICIENTS": _coefficients(comparison),
        "EXPLANATION_LINK": explained.link,
        "EXPLANATION": explained.html(lambda name: _figure(name, made)),
        "LEADERBOARD": _leaderboard(comparison),
        "FINDINGS": _findings(comparison),
        "REPEAT": _repeat(comparison),
        "BEST": _text(comparison.best),
        "CHARTS_METHODS": _figure("methods", made),
        "CHARTS_ERRORS": _figure("confusion", made) + _figure("class_errors", made),
        "CHARTS_PROBABILITIES": _figure("reliability", made) + _figure("coverage", made),
        "CHARTS_TRAINING": _figure("training", made) + _figure("crossings", made),
        "DATA": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "STYLE": _asset("page.css"),
        "SCRIPT": _asset("page.js"),
        # The bundle's own addresses (an editor, an issue) are of no use on a page that is alone.
        "BUNDLE": re.sub(
            r"https://(?:vega\.github\.io|github\.com)/", "/", vl_convert.javascript_bundle(_EXPOSE)
        ).replace("</script", "<\\/script"),
    }
    page = _asset("page.html")
    return re.sub(r"@@([A-Z_]+)@@", lambda match: parts[match.group(1)], page)


def _asset(name: str) -> str:
    return resources.files("echelon.report").joinpath(name).read_text(encoding="utf-8")


def _text(value: Any) -> str:
    return html.escape(str(value))


def _title(comparison: Comparison) -> str:
    what = "Comparison of methods" if len(comparison.methods) > 1 else "Evaluation"
    return _text(f"{what} on {comparison.main_run.config.data}")


# ---- charts --------------------------------------------------------------------------------------


def _with_width(chart: Any, width: int | str) -> Any:
    """A chart of some width; in charts below each other, each of them."""
    chart = chart.copy()
    if hasattr(chart, "vconcat"):
        chart.vconcat = [below.properties(width=width) for below in chart.vconcat]
        return chart
    return chart.properties(width=width)


def _spec(titled: Titled) -> dict[str, Any]:
    # Charts below each other cannot take the width of their place; the script sets it.
    is_stack = hasattr(titled.chart, "vconcat")
    chart = titled.chart if is_stack else _with_width(titled.chart, "container")
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema", None)
    spec.pop("config", None)
    spec["description"] = titled.description
    return spec


def _figure(name: str, made: dict[str, Titled]) -> str:
    if name not in made:
        return ""
    titled = made[name]
    return (
        f'<figure><h3>{_text(titled.title)}</h3><div class="chart" data-chart="{name}"></div>'
        f"<figcaption>{_text(titled.description)}</figcaption></figure>"
    )


# ---- tables and lists ----------------------------------------------------------------------------


def _methods_table(comparison: Comparison) -> str:
    shown = [row for row in shown_metrics(wide=True) if row.name in comparison.main_run.metrics]
    head = "".join(f'<th scope="col">{_text(metric.title)}</th>' for metric in shown)
    body = []
    for name in comparison.runs:
        role = comparison.role(name)
        tag = "" if role == "method" else f' <span class="tag">{role}</span>'
        cells = "".join(f"<td>{_text(comparison.cell(name, metric.name))}</td>" for metric in shown)
        count = len(comparison.runs[name])
        body.append(
            f'<tr class="{role}"><th scope="row">{_text(name)}{tag}</th><td>{count}</td>{cells}'
            f"</tr>"
        )
    return (
        f'<table><thead><tr><th scope="col">method</th><th scope="col">runs</th>{head}</tr>'
        f"</thead><tbody>{''.join(body)}</tbody></table>"
    )


def _coefficients(comparison: Comparison) -> str:
    for runs in comparison.runs.values():
        values = runs[0].outcome.get("coefficients")
        if values:
            break
    else:
        return ""
    largest = sorted(values.items(), key=lambda item: -abs(item[1]))[:_COEFFICIENTS]
    rows = "".join(
        f'<tr><th scope="row">{_text(name)}</th><td>{value:+.3f}</td></tr>'
        for name, value in largest
    )
    return (
        "<details><summary>Coefficients of the linear model</summary><p>What one standard "
        "deviation of a feature adds to the score; a larger score means a higher class. "
        f"The {len(largest)} largest of {len(values)}.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Coefficients">'
        '<table><thead><tr><th scope="col">feature</th><th scope="col">coefficient</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div></details>"
    )


def _leaderboard(comparison: Comparison) -> str:
    """What a blend tried and what it took of each, of the first run that is one."""
    blends = [name for name, runs in comparison.runs.items() if runs[0].outcome.get("leaderboard")]
    if not blends:
        return ""
    name, outcome = blends[0], comparison.runs[blends[0]][0].outcome
    board = outcome["leaderboard"]
    numbers = (
        ("weight", ".2f"),
        ("rps", ".4f"),
        ("mae", ".4f"),
        ("fits", ".0f"),
        ("seconds", ".1f"),
    )
    shown = [(key, style) for key, style in numbers if key in board[0]]
    head = "".join(f'<th scope="col">{_text(key)}</th>' for key, _ in shown)
    rows = "".join(
        f'<tr><th scope="row">{_text(row["member"])}</th>'
        + "".join(f"<td>{_number(row.get(key), style)}</td>" for key, style in shown)
        + "</tr>"
        for row in board
    )
    short = " The time limit decided what was fitted." if outcome.get("out_of_time") else ""
    return (
        f"<details><summary>What {_text(name)} is a mixture of</summary><p>Every model that was "
        "tried, its weight in the mixture, and its errors on rows that it had not seen."
        f'{short}</p><div class="scroll" tabindex="0" role="region" aria-label="Members">'
        f'<table><thead><tr><th scope="col">member</th>{head}</tr></thead><tbody>{rows}</tbody>'
        "</table></div></details>"
    )


def _number(value: float | None, style: str) -> str:
    return "" if value is None or value != value else f"{value:{style}}"


def _findings(comparison: Comparison) -> str:
    return "".join(
        f'<li class="{finding.state}" data-code="{finding.code}">'
        f'<span class="state">{finding.state}</span>'
        f"<strong>{_text(finding.title)}</strong> {_text(finding.message)}</li>"
        for finding in comparison.findings
    )


def _repeat(comparison: Comparison) -> str:
    run = comparison.main_run
    document = {"config": run.config.document(), "environment": run.environment}
    shown = json.dumps(document, indent=2)
    return _text(shown)


# ---- single rows ---------------------------------------------------------------------------------


def _explored_rows(comparison: Comparison, groups: Groups) -> dict[str, Any]:
    """Rows that are worth a look, with their distributions, and three orders of them."""
    arrays, truth = comparison.main_run.predictions, comparison.truth
    p = arrays["probabilities"].astype(np.float64)
    prediction = arrays["prediction"].astype(np.int64)
    orders = explored_orders(truth, prediction, p)
    chosen = sorted({int(row) for order in orders.values() for row in order})
    place = {row: i for i, row in enumerate(chosen)}
    numbers = arrays.get("row", np.arange(len(truth)))
    bars = groups.summed(p[chosen])
    return {
        "number": numbers[chosen].tolist(),
        "truth": truth[chosen].tolist(),
        "prediction": prediction[chosen].tolist(),
        "given": [
            [round(float(p[row, k]), 4) for k in (truth[row], prediction[row])] for row in chosen
        ],
        "probabilities": np.round(bars, 4).tolist(),
        "orders": {name: [place[int(row)] for row in order] for name, order in orders.items()},
        **_cells(arrays, chosen),
    }


def _cells(arrays: Mapping[str, Any], chosen: list[int]) -> dict[str, Any]:
    """The texts of the rows, and their images small enough for the page."""
    cells: dict[str, Any] = {}
    if "text" in arrays:
        cells["text"] = [str(arrays["text"][row]) for row in chosen]
    if "image" in arrays:
        cells["image"] = [_thumbnail(arrays["image"][row]) for row in chosen]
    return cells


def _thumbnail(cell: Any) -> str | None:
    """An image as a data address; None where it can no longer be read."""
    from echelon.data.kinds.image import open_image

    try:
        image = open_image(str(cell) if isinstance(cell, str) else cell)
        image.thumbnail((_THUMBNAIL, _THUMBNAIL))
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=80)
    except (ValueError, OSError):
        return None
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
