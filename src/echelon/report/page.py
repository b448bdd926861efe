"""The HTML page: one file with everything in it, which asks nothing of any network."""

import html
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

from echelon.report.charts import Titled, all_charts, altair
from echelon.report.explanation import explained_section
from echelon.report.groups import Groups
from echelon.report.palette import colours
from echelon.report.rows import explored_rows, has_lines
from echelon.report.sections import facts, page_sections, title_of
from echelon.report.statistics import statistics_charts
from echelon.runs import Comparison, read_runs
from echelon.storage.atomic import replacing, replacing_text, require_writable, write_text

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
    explained = explained_section(comparison)
    made = {**all_charts(comparison), **statistics_charts(comparison), **explained.charts}
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, titled in made.items():
        if titled.chart is None:  # a sentence on the page
            continue
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
    made = {**all_charts(comparison), **statistics_charts(comparison), **explained.charts}
    groups = Groups.of(comparison.classes)
    sections = page_sections(comparison, made, explained)
    specs = {name: _spec(titled) for name, titled in made.items() if titled.chart is not None}
    data = {
        "charts": specs, "rows": explored_rows(comparison, groups), "classes": comparison.classes,
        "groups": groups.names, "group": groups.of_rank.tolist(), "note": groups.note,
        "colour": colours(comparison.methods)[comparison.best],
        "lines": has_lines(comparison.main_run.config.data),
        "reasons": explained.reasons,
    }  # fmt: skip
    parts = {
        "TITLE": _text(title_of(comparison)),
        "FACTS": facts(comparison),
        "NAV": "".join(
            f'<a href="#{section.name}">{_text(section.short)}</a>' for section in sections
        ),
        "SECTIONS": "".join(
            f'<section id="{section.name}" aria-labelledby="{section.name}-title">'
            f'<h2 id="{section.name}-title">{_text(section.title)}</h2>{section.content}</section>'
            for section in sections
        ),
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
