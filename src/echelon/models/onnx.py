"""One ONNX graph from raw columns to exceedance, probabilities and label.

Every column is an input of its own: numbers are a vector of doubles (NaN where missing), dates one
of days since 1970-01-01, categories one of strings (empty where missing), spelled as the model
names them (see :mod:`echelon.data.cells`), so that nothing of their preprocessing is needed
outside. A text is its token ids (rows, tokens), -1 behind the end, and an image its pixels
(rows, 3, h, w), whole numbers 0..255. The graph is checked against the model before it is written.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from echelon.curve import CalibrationMap
from echelon.data.kinds.base import TABLE, Encoding
from echelon.extras import require
from echelon.networks.network import OrdinalNetwork
from echelon.storage.atomic import require_writable, write_bytes

_TOLERANCE = 1e-5
_CHECK_ROWS = 64
_OPSET = 18
_PREFIX = "echelon_"  # of names inside the graph, which columns may not have


class _FromRawRows(nn.Module):
    """Raw cells by kind, as a network takes them, to exceedance, probabilities and rank."""

    def __init__(
        self,
        network: OrdinalNetwork,
        calibration: CalibrationMap | None,
        decision: str | Tensor,
    ) -> None:
        super().__init__()
        self.network = network
        self.decision = decision
        self.is_calibrated = calibration is not None
        for name, values in (calibration._asdict() if calibration is not None else {}).items():
            self.register_buffer(f"calibration_{name}", values)

    def forward(self, cells: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
        curve = self.network.curve(self.network(cells))
        if self.is_calibrated:
            fields = (self.get_buffer(f"calibration_{name}") for name in CalibrationMap._fields)
            curve = curve.calibrated(CalibrationMap(*fields))
        return curve.exceedance, curve.probabilities, curve.label(self.decision)


def export_onnx(model: Any, path: str | Path) -> None:
    """Write a fitted :class:`echelon.OrdinalClassifier` as ONNX (extra `onnx`)."""
    onnx, onnxruntime, _ = (
        require(name, "ONNX graphs") for name in ("onnx", "onnxruntime", "onnxscript")
    )
    require_writable(path)
    core = _export_core(model)
    whole = _with_raw_columns(core, model)
    onnx.checker.check_model(whole)
    content = whole.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    _compare(session, model)
    write_bytes(path, content)


def _export_core(model: Any) -> Any:
    import warnings

    module = _FromRawRows(model.network_, model.calibration_, model.decision_rule())
    module = module.eval().cpu()
    rows = torch.export.Dim("rows", min=1)
    example: dict[str, Any] = {}
    shapes: dict[str, Any] = {}
    names = []
    if TABLE in model.schema_.parts:
        example[TABLE] = (
            torch.zeros(3, len(model.schema_.numeric), dtype=torch.float64),
            torch.zeros(3, len(model.schema_.categorical), dtype=torch.int64),
        )
        shapes[TABLE] = ({0: rows}, {0: rows})
        names = ["numbers", "codes"]
    for kind, encoding in model.readers_.encodings.items():
        example[kind] = encoding.example(3)
        shapes[kind] = {0: rows}
        names.append(kind)
        for place, (name, largest) in encoding.free.items():
            shapes[kind][place] = torch.export.Dim(name, min=1, max=largest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        program = torch.onnx.export(
            module,
            kwargs={"cells": example},
            dynamo=True,
            verbose=False,
            opset_version=_OPSET,
            input_names=[f"{_PREFIX}{name}" for name in names],
            output_names=["exceedance", "probabilities", "rank"],
            dynamic_shapes={"cells": shapes},
        )
    assert program is not None
    return program.model_proto


def _with_raw_columns(core: Any, model: Any) -> Any:
    """Put a column of its own before every number and code, and labels behind the ranks."""
    from onnx import TensorProto, helper

    nodes, inputs, initial = [], [], []
    stacks: dict[str, list[str]] = {f"{_PREFIX}numbers": [], f"{_PREFIX}codes": []}
    for i, column in enumerate(model.schema_.columns):
        if column.kind in model.readers_.encodings:
            element, shape = _cell_input(model.readers_.encodings[column.kind])
            inputs.append(helper.make_tensor_value_info(column.name, element, shape))
            nodes.append(helper.make_node("Identity", [column.name], [_PREFIX + column.kind]))
            continue
        is_number = column.kind in ("number", "date")
        element = TensorProto.DOUBLE if is_number else TensorProto.STRING
        inputs.append(helper.make_tensor_value_info(column.name, element, ["rows"]))
        source = column.name
        if not is_number:
            source = f"echelon_code_{i}"
            known = list(column.categories)
            nodes.append(
                helper.make_node(
                    "LabelEncoder",
                    [column.name],
                    [source],
                    domain="ai.onnx.ml",
                    keys_strings=known or [""],
                    values_int64s=list(range(1, len(known) + 1)) or [0],
                    default_int64=0,
                )
            )
        nodes.append(helper.make_node("Unsqueeze", [source, "echelon_axis"], [f"echelon_2d_{i}"]))
        stacks[_PREFIX + ("numbers" if is_number else "codes")].append(f"echelon_2d_{i}")
    if any(stacks.values()):
        initial.append(helper.make_tensor("echelon_axis", TensorProto.INT64, [1], [1]))
    used = {name for node in core.graph.node for name in node.input}
    for name, columns in stacks.items():
        if columns and name in used:
            nodes.append(helper.make_node("Concat", columns, [name], axis=1))
        elif name in used:
            raise ValueError(f"the exported network reads {name}, of which the table has none")
    label, kind, tables = _label_node(model.classes_)
    outputs = [value for value in core.graph.output if value.name != "rank"]
    outputs.append(helper.make_tensor_value_info("label", kind, ["rows"]))
    graph = helper.make_graph(
        [*nodes, *core.graph.node, label],
        "echelon",
        inputs,
        outputs,
        [*initial, *tables, *core.graph.initializer],
    )
    opsets = [opset for opset in core.opset_import if opset.domain != "ai.onnx.ml"]
    opsets.append(helper.make_opsetid("ai.onnx.ml", 4))
    whole = helper.make_model(
        graph, opset_imports=opsets, ir_version=core.ir_version, functions=core.functions
    )
    whole.producer_name = "echelon"
    return whole


def _cell_input(encoding: Encoding) -> tuple[int, list[str | int]]:
    """The type and the shape of what a network gets of a kind of cell."""
    from onnx import TensorProto

    example = encoding.example(1)
    element = {torch.int64: TensorProto.INT64, torch.uint8: TensorProto.UINT8}[example.dtype]
    shape: list[str | int] = ["rows", *example.shape[1:]]
    for place, (name, _) in encoding.free.items():
        shape[place] = name
    return element, shape


def _label_node(classes: NDArray[Any]) -> tuple[Any, int, list[Any]]:
    """The node from ranks to labels, the type of the labels, and the tables that it reads."""
    from onnx import TensorProto, helper

    if classes.dtype.kind in "fu":  # which a LabelEncoder would round
        kind = TensorProto.DOUBLE if classes.dtype.kind == "f" else TensorProto.UINT64
        table = helper.make_tensor("echelon_labels", kind, [len(classes)], classes.tolist())
        return helper.make_node("Gather", ["echelon_labels", "rank"], ["label"]), kind, [table]
    values: dict[str, Any]
    if classes.dtype.kind in "ib":
        values, kind = {"values_int64s": classes.astype(int).tolist()}, TensorProto.INT64
    else:
        values, kind = {"values_strings": [str(label) for label in classes]}, TensorProto.STRING
    node = helper.make_node(
        "LabelEncoder",
        ["rank"],
        ["label"],
        domain="ai.onnx.ml",
        keys_int64s=list(range(len(classes))),
        **values,
    )
    return node, kind, []


def _compare(session: Any, model: Any) -> None:
    """Run made-up rows, with missing and unknown values, through both."""
    frame = _made_up_rows(model)
    table = model.schema_.read(frame)
    inputs = model.readers_.inputs(table, model.network_.encoder)
    numbers = dict(zip((c.name for c in model.schema_.numeric), table.numbers.T, strict=True))
    taken = {} if isinstance(inputs, Tensor) else inputs.take(np.arange(len(frame)))
    columns = {}
    for column in model.schema_.columns:
        if column.kind in taken:
            columns[column.name] = taken[column.kind].numpy()
        elif column.name in numbers:
            columns[column.name] = np.ascontiguousarray(numbers[column.name])
        else:
            columns[column.name] = frame[column.name].fillna("").to_numpy(dtype=object)
    wanted = {value.name for value in session.get_inputs()}
    found = session.run(
        ["probabilities", "exceedance"], {k: v for k, v in columns.items() if k in wanted}
    )
    rows = frame if model.schema_.named else frame.to_numpy(dtype=object)
    for name, one, other in (
        ("probabilities", found[0], model.predict_proba(rows)),
        ("exceedance", found[1], model.predict_exceedance(rows)),
    ):
        worst = float(np.abs(one - other).max())
        if not worst <= _TOLERANCE:
            raise ValueError(
                f"the exported {name} differ from the model's by {worst:g}, more than "
                f"{_TOLERANCE:g}; nothing was written"
            )


def _made_up_rows(model: Any) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    encoder = model.network_.encoder
    centre = np.zeros(encoder.num_numeric)
    scale = np.ones(encoder.num_numeric)
    kept = encoder.kept.cpu().numpy()
    centre[kept], scale[kept] = encoder.centre.cpu().numpy(), encoder.scale.cpu().numpy()
    numbers = centre + scale * generator.normal(size=(_CHECK_ROWS, len(centre)))
    numbers[generator.random(numbers.shape) < 0.1] = np.nan
    frame = pd.DataFrame(numbers, columns=[column.name for column in model.schema_.numeric])
    for column in model.schema_.of_kind("date"):
        moments = pd.to_datetime(frame[column.name], unit="D", errors="coerce")
        frame[column.name] = moments.astype(object)
    for column in model.schema_.categorical:
        choices = [*column.categories, "never seen", None]
        picked = generator.integers(len(choices), size=_CHECK_ROWS)
        frame[column.name] = pd.Series([choices[i] for i in picked], dtype=object)
    for kind, encoding in model.readers_.encodings.items():
        (column,) = model.schema_.of_kind(kind)
        frame[column.name] = pd.Series(encoding.made_up(_CHECK_ROWS, generator), dtype=object)
    ordered: pd.DataFrame = frame[[column.name for column in model.schema_.columns]]
    return ordered
