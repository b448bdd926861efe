"""The command ``export``: a model as an ONNX graph."""

import json
from pathlib import Path
from typing import Annotated

import typer

from echelon.cli.options import AsJson, Model
from echelon.cli.writing import require_graph_file
from echelon.models.table import MODELS


def export(
    model: Model,
    onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write a model as one ONNX graph from raw columns to probabilities and label.

    Example: echelon export wine.echelon --onnx wine.onnx
    """
    require_graph_file(onnx, model)
    from echelon.models.loading import load

    fitted = load(model)
    if not MODELS[fitted.kind].exports:
        exported = ", ".join(row.name for row in MODELS.values() if row.exports)
        raise ValueError(
            f"{model} is a model of the kind {fitted.kind}, of which there is no ONNX graph; those "
            f"that can be exported are: {exported}"
        )
    fitted.export_onnx(onnx)
    print(json.dumps({"onnx": str(onnx)}) if as_json else f"wrote {onnx}")
