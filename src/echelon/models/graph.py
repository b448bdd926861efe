"""An ONNX graph while models write their nodes into it.

The graph begins with the raw columns of rows: each is an input of its own, and together they are
`numbers` (rows, p) in float64, NaN where missing, `codes` (rows, q), 0 where a category is missing
or unknown, and one tensor for each other kind of cell. A model adds what leads from there to its
log-probabilities; what comes after those is the same for all models.
"""

import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from echelon.data.calendar import calendar_parts
from echelon.data.columns import MEASURED, Column
from echelon.data.kinds.base import TABLE, Encoding
from echelon.data.kinds.numbers import NUMBERS
from echelon.data.missing_codes import code_numbers
from echelon.data.schema import TableSchema

ML = "ai.onnx.ml"
_OPSETS = {"": 18, ML: 4}
_PREFIX = "echelon_"  # of names inside the graph, which columns may not have


class _Module(NamedTuple):
    """A module of torch in a graph: an example of its argument, its free sizes, and names."""

    module: nn.Module
    example: Any
    shapes: Any
    inputs: list[str]
    results: list[str]


class _SideBySide(nn.Module):
    """Several modules as one: an argument for each, and the results of all."""

    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(modules)

    def forward(self, arguments: dict[str, Any]) -> tuple[Tensor, ...]:
        results: list[Tensor] = []
        for module, argument in zip(self.each, arguments.values(), strict=True):
            result = module(argument)
            results += result if isinstance(result, tuple) else (result,)
        return tuple(results)


def _taken(node: Any) -> list[str]:
    """The names that a node takes, and those that graphs inside it take from outside.

    A graph inside may call its results what others outside are called: those are its own.
    """
    taken = list(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            graph = attribute.g
            made = {value.name for values in (graph.input, graph.initializer) for value in values}
            made |= {name for inside in graph.node for name in inside.output}
            taken += [n for inside in graph.node for n in _taken(inside) if n not in made]
            # What only passes through has no node inside.
            taken += [value.name for value in graph.output if value.name not in made]
    return taken


def _rename(graph: Any, prefix: str) -> None:
    """Put a prefix before every name in a graph, and in the graphs inside it."""
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [name and prefix + name for name in names]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename(attribute.g, prefix)
    for values in (graph.input, graph.output, graph.initializer, graph.value_info):
        for value in values:
            value.name = prefix + value.name


class _Expression:
    """A node of a graph that can be reckoned with as with a number, in float64."""

    def __init__(self, graph: "Graph", name: str) -> None:
        self.graph, self.name = graph, name

    def _with(self, operator: str, other: Any) -> "_Expression":
        right = (
            other.name if isinstance(other, _Expression) else self.graph.constant(np.float64(other))
        )
        return _Expression(self.graph, self.graph.node(operator, self.name, right))

    def __add__(self, other: Any) -> "_Expression":
        return self._with("Add", other)

    def __sub__(self, other: Any) -> "_Expression":
        return self._with("Sub", other)

    def __mul__(self, other: Any) -> "_Expression":
        return self._with("Mul", other)

    def __truediv__(self, other: Any) -> "_Expression":
        return self._with("Div", other)

    def floor(self) -> "_Expression":
        """The whole number below."""
        return _Expression(self.graph, self.graph.node("Floor", self.name))


class Graph:
    """Nodes, constants and inputs, to which anyone may add.

    Parameters
    ----------
    schema : TableSchema
        The columns of the rows.
    encodings : mapping from kind to Encoding
        How cells of other kinds than the table's are encoded, before they get here.

    Examples
    --------
    >>> from echelon.data.schema import Column
    >>> graph = Graph(TableSchema((Column("size", "number"),), named=True), {})
    >>> negative = graph.node("Neg", graph.numbers)
    >>> [node.op_type for node in graph.nodes]
    ['Unsqueeze', 'Concat', 'Neg']
    """

    def __init__(self, schema: TableSchema, encodings: Mapping[str, Encoding]) -> None:
        self.schema, self.encodings = schema, encodings
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.functions: list[Any] = []
        self.inputs: list[Any] = [self._input(column) for column in schema.columns]
        self._modules: list[_Module] = []
        self._named = 0

    def name(self) -> str:
        """A name that nothing in the graph has yet."""
        self._named += 1
        return f"{_PREFIX}{self._named}"

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator, and give the name of its result."""
        from onnx import helper

        name = self.name()
        self.nodes.append(
            helper.make_node(operator, list(inputs), [name], domain=domain, **attributes)
        )
        return name

    def constant(self, values: Any) -> str:
        """Add an array, and give its name."""
        from onnx import numpy_helper

        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def as_double(self, name: str) -> str:
        """The same values in float64."""
        from onnx import TensorProto

        return self.node("Cast", name, to=TensorProto.DOUBLE)

    # ---- the columns of rows -----------------------------------------------------------------

    @cached_property
    def numbers(self) -> str:
        """Numbers and days, (rows, p), in float64, in the order of `schema.numeric`."""
        inputs = {column.name: self._without_codes(column) for column in self.schema.measured}
        names = [*inputs.values()]
        for date in self.schema.calendar:
            days = _Expression(self, inputs[date.name])
            names += [part.name for part in calendar_parts(days, _Expression.floor)]
        return self._stacked(names, np.float64, lambda: self.codes)

    def _without_codes(self, column: Column) -> str:
        """A column of numbers, (rows,), NaN where it holds a code for no answer."""
        name = column.name
        for number in code_numbers(column.missing_codes) if column.kind == NUMBERS.name else ():
            holds = self.node("Equal", name, self.constant(np.float64(number)))
            name = self.node("Where", holds, self.constant(np.float64(np.nan)), name)
        return name

    @cached_property
    def codes(self) -> str:
        """Codes of categories, (rows, q), in the order of `schema.categorical`."""
        encoded = []
        for column in self.schema.categorical:
            known = list(column.categories)
            encoded.append(
                self.node(
                    "LabelEncoder",
                    column.name,
                    domain=ML,
                    keys_strings=known or [""],
                    values_int64s=list(range(1, len(known) + 1)) or [0],
                    default_int64=0,
                )
            )
        return self._stacked(encoded, np.int64, lambda: self.numbers)

    def _stacked(self, vectors: list[str], dtype: Any, other: Any) -> str:
        """Vectors (rows,) as the columns of a matrix, which has the rows of another without any."""
        if not vectors:
            rows = self.node("Shape", other(), start=0, end=1)
            shape = self.node("Concat", rows, self.constant(np.array([0])), axis=0)
            return self.node("Expand", self.constant(np.zeros((1, 0), dtype)), shape)
        axis = self.constant(np.array([1]))
        columns = [self.node("Unsqueeze", vector, axis) for vector in vectors]
        return self.node("Concat", *columns, axis=1)

    def _input(self, column: Any) -> Any:
        from onnx import TensorProto, helper

        if column.kind in self.encodings:
            encoding = self.encodings[column.kind]
            example = encoding.example(1)
            types = {torch.int64: TensorProto.INT64, torch.uint8: TensorProto.UINT8}
            shape: list[str | int] = ["rows", *example.shape[1:]]
            for place, (name, _) in encoding.free.items():
                shape[place] = name
            return helper.make_tensor_value_info(column.name, types[example.dtype], shape)
        is_number = column.kind in MEASURED
        element = TensorProto.DOUBLE if is_number else TensorProto.STRING
        return helper.make_tensor_value_info(column.name, element, ["rows"])

    # ---- modules of torch --------------------------------------------------------------------

    def module_of_cells(self, module: nn.Module, parts: Iterable[str]) -> str:
        """Add a module that takes cells by the part of a row that they are.

        Parameters
        ----------
        module : nn.Module
            As :class:`echelon.networks.network.OrdinalNetwork` does, it takes numbers and codes of
            the table, and a tensor of every other part.
        parts : iterable of str
            Those that it takes.
        """
        rows = self._new_rows()
        example: dict[str, Any] = {}
        shapes: dict[str, Any] = {}
        names: list[str] = []
        for part in parts:
            if part == TABLE:
                sizes = len(self.schema.numeric), len(self.schema.categorical)
                example[part] = (
                    torch.zeros(3, sizes[0], dtype=torch.float64),
                    torch.zeros(3, sizes[1], dtype=torch.int64),
                )
                shapes[part] = ({0: rows}, {0: rows})
                names += [self.numbers, self.codes]
                continue
            encoding = self.encodings[part]
            example[part], shapes[part] = encoding.example(3), {0: rows}
            for place, (name, largest) in encoding.free.items():
                shapes[part][place] = torch.export.Dim(name, min=1, max=largest)
            (column,) = (column for column in self.schema.columns if column.kind == part)
            names.append(column.name)
        return self._module(module, example, shapes, names, 1)[0]

    def module_of_rows(
        self, module: nn.Module, width: int, name: str, num_results: int
    ) -> list[str]:
        """Add a module of one matrix of float64, (rows, width), and give the names of its results.

        Parameters
        ----------
        module : nn.Module
        width : int
        name : str
            Of the matrix.
        num_results : int
        """
        example = torch.zeros(3, width, dtype=torch.float64)
        shapes = {0: self._new_rows()}
        return self._module(module, example, shapes, [name], num_results)

    def _module(
        self, module: nn.Module, example: Any, shapes: Any, inputs: list[str], num_results: int
    ) -> list[str]:
        results = [self.name() for _ in range(num_results)]
        self._modules.append(_Module(module, example, shapes, inputs, results))
        return results

    def _new_rows(self) -> Any:
        """The free number of rows of one more module.

        Each has its own: of one that several share, the exporter may ask any of them, and so a
        module would wait for the results of one that comes after it.
        """
        return torch.export.Dim(f"rows{len(self._modules)}", min=1)

    def _translate_modules(self) -> None:
        """Add the nodes of all modules at once, as translating one takes seconds."""
        from onnx import helper

        if not self._modules:
            return
        inputs = [name for module in self._modules for name in module.inputs]
        results = [name for module in self._modules for name in module.results]
        prefix = f"{self.name()}_"
        taken = [f"input{i}" for i in range(len(inputs))]
        given = [f"result{i}" for i in range(len(results))]
        together = _SideBySide([module.module for module in self._modules])
        # By name, as the exporter takes no notice of free sizes in a list.
        example = {f"argument{i}": module.example for i, module in enumerate(self._modules)}
        shapes = {f"argument{i}": module.shapes for i, module in enumerate(self._modules)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's own
            program = torch.onnx.export(
                together.eval().cpu(),
                kwargs={"arguments": example},
                dynamo=True,
                verbose=False,
                opset_version=_OPSETS[""],
                input_names=taken,
                output_names=given,
                dynamic_shapes={"arguments": shapes},
            )
        assert program is not None
        translated = program.model_proto
        _rename(translated.graph, prefix)
        links = [*zip(inputs, taken, strict=True)]
        self.nodes += [helper.make_node("Identity", [a], [prefix + b]) for a, b in links]
        self.nodes += translated.graph.node
        links = [*zip(given, results, strict=True)]
        self.nodes += [helper.make_node("Identity", [prefix + a], [b]) for a, b in links]
        self.constants += translated.graph.initializer
        self.functions += translated.functions

    # ---- the end -----------------------------------------------------------------------------

    def labels(self, ranks: str, classes: NDArray[Any]) -> tuple[str, int]:
        """Add what leads from ranks to labels; the name and the type of the labels."""
        from onnx import TensorProto

        if classes.dtype.kind in "fu":  # which a LabelEncoder would round
            kind = TensorProto.DOUBLE if classes.dtype.kind == "f" else TensorProto.UINT64
            dtype = np.float64 if classes.dtype.kind == "f" else np.uint64
            return self.node("Gather", self.constant(classes.astype(dtype)), ranks), kind
        values: dict[str, Any]
        if classes.dtype.kind in "ib":
            values, kind = {"values_int64s": classes.astype(int).tolist()}, TensorProto.INT64
        else:
            values, kind = {"values_strings": [str(label) for label in classes]}, TensorProto.STRING
        places = list(range(len(classes)))
        return self.node("LabelEncoder", ranks, domain=ML, keys_int64s=places, **values), kind

    def finished(self, outputs: Mapping[str, tuple[str, int, list[str | int]]]) -> Any:
        """The whole graph as a model of ONNX.

        Parameters
        ----------
        outputs : mapping from name to (name inside, type, shape)
        """
        from onnx import helper

        self._translate_modules()
        ends, values = [], []
        for name, (inside, element, shape) in outputs.items():
            ends.append(helper.make_node("Identity", [inside], [name]))
            values.append(helper.make_tensor_value_info(name, element, shape))
        graph = helper.make_graph(
            [*self._in_order(), *ends], "echelon", self.inputs, values, self.constants
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
        whole = helper.make_model(
            graph, opset_imports=opsets, ir_version=10, functions=self.functions
        )
        whole.producer_name = "echelon"
        return whole

    def _in_order(self) -> list[Any]:
        """The nodes, each after those whose results it takes."""
        # An empty name is a result that nobody wants, or an argument that is left out.
        makers = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        needed = {
            i: [makers[name] for name in _taken(node) if name in makers]
            for i, node in enumerate(self.nodes)
        }
        return [self.nodes[i] for i in TopologicalSorter(needed).static_order()]
