"""The single rows of the page: their distributions, texts, images, columns and numbers."""

import base64
import html
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from echelon.report.groups import Groups
from echelon.runs import Comparison, row_orders

_THUMBNAIL = 160  # pixels
_PRINTED = 12  # rows, on paper
_LINED = (".csv", ".tsv", ".txt", ".xlsx", ".xls", ".jsonl")


def has_lines(data: str) -> bool:
    """Whether rows of data can be found by their line in an editor or a spreadsheet.

    Examples
    --------
    >>> has_lines("survey.csv.gz"), has_lines("survey.parquet")
    (True, False)
    """
    name = data.lower()
    for ending in (".gz", ".zip", ".bz2", ".xz", ".zst"):
        name = name.removesuffix(ending)
    return name.endswith(_LINED)


def explored_rows(comparison: Comparison, groups: Groups) -> dict[str, Any]:
    """Rows that are worth a look, with their distributions, and three orders of them."""
    arrays, truth = comparison.main_run.predictions, comparison.truth
    p = arrays["probabilities"].astype(np.float64)
    prediction = arrays["prediction"].astype(np.int64)
    orders = row_orders(arrays)
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


def printed_rows(comparison: Comparison) -> str:
    """A table of the largest misses for paper, where nobody can choose a row."""
    arrays, truth, classes = comparison.main_run.predictions, comparison.truth, comparison.classes
    prediction = arrays["prediction"].astype(np.int64)
    numbers = arrays.get("row", np.arange(len(truth)))
    places = [int(place) for place in row_orders(arrays)["error"][:_PRINTED]]
    cells = _cells(arrays, places, images=False)
    body = []
    for i, place in enumerate(places):
        said = []
        if "text" in cells:
            said.append(cells["text"][i])
        if cells.get("cells") and cells["cells"][i]:
            pairs = zip(cells["names"], cells["cells"][i], strict=True)
            said += [f"{name}: {value or 'missing'}" for name, value in pairs]
        given = float(arrays["probabilities"][place, truth[place]])
        body.append(
            f'<tr><th scope="row">{numbers[place]}</th>'
            f"<td>{html.escape(classes[truth[place]])}</td>"
            f"<td>{html.escape(classes[prediction[place]])}</td><td>{given:.1%}</td>"
            f'<td class="values">{html.escape("; ".join(said))}</td></tr>'
        )
    return (
        '<div class="on-paper"><h3>The largest errors</h3><table class="printed"><thead><tr>'
        '<th scope="col">row</th><th scope="col">true</th><th scope="col">predicted</th>'
        '<th scope="col">given to the truth</th><th scope="col">its columns</th></tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cells(arrays: Mapping[str, Any], chosen: list[int], images: bool = True) -> dict[str, Any]:
    """Texts, columns, and images small enough for the page, of rows."""
    cells: dict[str, Any] = {}
    if "text" in arrays:
        cells["text"] = [str(arrays["text"][row]) for row in chosen]
    if "image" in arrays and images:
        cells["image"] = [_thumbnail(arrays["image"][row]) for row in chosen]
    if "cells" in arrays:
        place = {int(row): i for i, row in enumerate(arrays["cell_rows"])}
        cells["names"] = [str(name) for name in arrays["cell_names"]]
        cells["cells"] = [
            [str(cell) for cell in arrays["cells"][place[row]]] if row in place else None
            for row in chosen
        ]
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
