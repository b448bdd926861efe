"""Trees on all thresholds as an operator of ONNX.

The operator knows no thresholds. So a tree that splits at thresholds is written once for each
stretch of thresholds between its splits, without those splits, and its leaves speak for that
stretch alone; all other trees are written once and speak for all. Sets of categories become columns
that say whether a row's category is in the set, as older operators know no sets.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echelon.models.graph import ML, Graph
from echelon.models.tree_text import Tree

Floats = NDArray[np.float64]
_Set = tuple[int, tuple[int, ...]]  # a column of categories, and the words of a set
_LOWEST = float(np.log(np.finfo(np.float64).tiny))


def add_trees(
    graph: Graph, trees: Sequence[Tree], base: Floats, num_categories: Sequence[int]
) -> str:
    """Add trees to a graph; the name of the logits of P(y > k), (rows, K-1), in float64.

    Parameters
    ----------
    graph : Graph
    trees : sequence of Tree
        On the numbers of the graph, then its codes, and the threshold.
    base : array, shape (K-1,)
        The logits that they start from.
    num_categories : sequence of int
        How many categories each column of codes has.
    """
    operator = _Operator(len(graph.schema.numeric), len(num_categories), len(base))
    for tree in trees:
        operator.add(tree)
    shift = graph.constant(base + operator.constant[:-1] + operator.constant[-1])
    if not operator.nodes:
        rows = graph.node("Shape", graph.numbers, start=0, end=1)
        shape = graph.node("Concat", rows, graph.constant(np.array([len(base)])), axis=0)
        return graph.node("Expand", shift, shape)
    features, places = _features(graph, operator, num_categories)
    # The operator adds in float64 and gives float32.
    sums = graph.as_double(_ensemble(graph, operator, features, places))
    of_thresholds = _columns(graph, sums, 0, len(base))
    of_all = _columns(graph, sums, len(base), len(base) + 1)
    return graph.node("Add", graph.node("Add", of_thresholds, of_all), shift)


def add_log_probabilities(graph: Graph, logits: str, num_classes: int) -> str:
    """Add what leads from falling logits of P(y > k), (rows, K-1), to log P(y = k), (rows, K)."""
    zero, unit = graph.constant(np.float64(0)), graph.constant(np.float64(1))

    def log_sigmoid(name: str) -> str:
        small = graph.node("Exp", graph.node("Neg", graph.node("Abs", name)))
        rest = graph.node("Log", graph.node("Add", unit, small))
        return graph.node("Sub", graph.node("Min", name, zero), rest)

    tasks = num_classes - 1
    above, below = log_sigmoid(logits), log_sigmoid(graph.node("Neg", logits))
    logs = [_columns(graph, below, 0, 1), _columns(graph, above, tasks - 1, tasks)]
    if tasks > 1:
        # s(a) - s(b) = s(a) s(-b) (1 - exp(b - a))
        rise = graph.node(
            "Sub", _columns(graph, logits, 1, tasks), _columns(graph, logits, 0, tasks - 1)
        )
        share = graph.node("Log", graph.node("Sub", unit, graph.node("Exp", rise)))
        both = graph.node(
            "Add", _columns(graph, above, 0, tasks - 1), _columns(graph, below, 1, tasks)
        )
        logs.insert(1, graph.node("Add", both, share))
    lowest = graph.constant(np.float64(_LOWEST))
    return graph.node("Max", graph.node("Concat", *logs, axis=1), lowest)


def _columns(graph: Graph, name: str, start: int, end: int) -> str:
    """Some neighbouring columns of a matrix."""
    places = (graph.constant(np.array([place])) for place in (start, end, 1))
    return graph.node("Slice", name, *places)


class _Node(NamedTuple):
    """A node of the operator: a leaf, or what goes to `true` where its column is <= the value."""

    tree: int
    number: int
    column: int = 0
    value: float = 0.0
    true: int = 0
    false: int = 0
    gap_is_true: bool = False
    is_leaf: bool = True


class _Leaf(NamedTuple):
    """What a leaf adds to an output."""

    tree: int
    number: int
    output: int
    value: float


class _Operator:
    """The nodes and leaves of all trees, and the sets of categories that they ask for.

    Columns are the numbers and then the sets, in the order in which trees asked for them. Outputs
    are one for each threshold, and a last one that counts for all of them; `constant` is what trees
    of a single leaf add to each.
    """

    def __init__(self, num_numbers: int, num_codes: int, num_thresholds: int) -> None:
        self.num_numbers = num_numbers
        self.threshold_column = num_numbers + num_codes
        self.num_thresholds = num_thresholds
        self.nodes: list[_Node] = []
        self.leaves: list[_Leaf] = []
        self.sets: dict[_Set, int] = {}
        self.constant = np.zeros(num_thresholds + 1)
        self._num_trees = 0

    def add(self, tree: Tree) -> None:
        """Write a tree, once for each stretch of thresholds that it does not divide."""
        at = [column == self.threshold_column for column in tree.columns]
        last = np.unique(np.floor(np.array(tree.thresholds)[at]))
        last = last[(last >= 0) & (last < self.num_thresholds - 1)]
        if not len(last):
            self._write(tree, 0.0, [self.num_thresholds])
            return
        edges = [0, *(last.astype(np.int64) + 1).tolist(), self.num_thresholds]
        for start, end in pairwise(edges):
            self._write(tree, float(start), list(range(start, end)))

    def _write(self, tree: Tree, threshold: float, outputs: list[int]) -> None:
        """Write a tree as it is at a threshold; what it says is added to some outputs."""
        root = self._skipped(tree, threshold, 0 if tree.columns else ~0)
        if root < 0:  # nothing is left but a leaf
            self.constant[outputs] += tree.leaf_values[~root]
            return
        number_of = {root: 0}
        waiting = [root]
        while waiting:
            place = waiting.pop()
            number = number_of[place]
            if place < 0:
                self.nodes.append(_Node(self._num_trees, number))
                value = tree.leaf_values[~place]
                self.leaves += [_Leaf(self._num_trees, number, each, value) for each in outputs]
                continue
            children = []
            for child in (tree.left[place], tree.right[place]):
                node = self._skipped(tree, threshold, child)
                number_of[node] = len(number_of)
                children.append(number_of[node])
                waiting.append(node)
            self.nodes.append(self._split(tree, place, number, *children))
        self._num_trees += 1

    def _skipped(self, tree: Tree, threshold: float, place: int) -> int:
        """The first node from here on that does not split thresholds, below 0 for a leaf."""
        while place >= 0 and tree.columns[place] == self.threshold_column:
            goes_left = threshold <= tree.thresholds[place]
            place = tree.left[place] if goes_left else tree.right[place]
        return place

    def _split(self, tree: Tree, place: int, number: int, left: int, right: int) -> _Node:
        column, value = tree.columns[place], tree.thresholds[place]
        of_tree = self._num_trees, number
        if column >= self.num_numbers:
            key = column - self.num_numbers, tree.sets[int(value)]
            member = self.num_numbers + self.sets.setdefault(key, len(self.sets))
            return _Node(*of_tree, member, 0.5, right, left, is_leaf=False)
        gap_is_left = tree.gap_goes_left(place)
        return _Node(*of_tree, column, value, left, right, gap_is_left, is_leaf=False)


def _features(
    graph: Graph, operator: _Operator, num_categories: Sequence[int]
) -> tuple[str, NDArray[np.int64]]:
    """The columns of the operator, (rows, p + sets), and where each of them stands."""
    blocks = [graph.numbers] if operator.num_numbers else []
    places = np.arange(operator.num_numbers + len(operator.sets))
    done = operator.num_numbers
    for column, count in enumerate(num_categories):  # the sets of one column stand together
        sets = [(words, number) for (of, words), number in operator.sets.items() if of == column]
        if not sets:
            continue
        members = np.zeros((count + 1, len(sets)), dtype=np.uint8)
        for i, (words, number) in enumerate(sets):
            known = range(min(count + 1, 32 * len(words)))
            members[: len(known), i] = [words[code // 32] >> code % 32 & 1 for code in known]
            places[operator.num_numbers + number] = done + i
        done += len(sets)
        code = graph.node("Gather", graph.codes, graph.constant(np.int64(column)), axis=1)
        blocks.append(graph.as_double(graph.node("Gather", graph.constant(members), code, axis=0)))
    return graph.node("Concat", *blocks, axis=1), places


def _ensemble(graph: Graph, operator: _Operator, features: str, places: NDArray[np.int64]) -> str:
    nodes, leaves = operator.nodes, operator.leaves
    return graph.node(
        "TreeEnsembleRegressor",
        features,
        domain=ML,
        n_targets=operator.num_thresholds + 1,
        nodes_treeids=[node.tree for node in nodes],
        nodes_nodeids=[node.number for node in nodes],
        nodes_featureids=[int(places[node.column]) for node in nodes],
        nodes_modes=["LEAF" if node.is_leaf else "BRANCH_LEQ" for node in nodes],
        nodes_values_as_tensor=_tensor([node.value for node in nodes]),
        nodes_truenodeids=[node.true for node in nodes],
        nodes_falsenodeids=[node.false for node in nodes],
        nodes_missing_value_tracks_true=[int(node.gap_is_true) for node in nodes],
        target_treeids=[leaf.tree for leaf in leaves],
        target_nodeids=[leaf.number for leaf in leaves],
        target_ids=[leaf.output for leaf in leaves],
        target_weights_as_tensor=_tensor([leaf.value for leaf in leaves]),
    )


def _tensor(values: list[float]) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(values, dtype=np.float64))
