"""Trees as an operator of ONNX: what LightGBM says, onnxruntime says too."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from echelon.data.schema import Column, TableSchema
from echelon.models.graph import Graph
from echelon.models.tree_graph import add_log_probabilities, add_trees
from echelon.models.trees import OrdinalTrees, TreeRows, TreeSettings, fit_trees


def run(trees: OrdinalTrees, rows: TreeRows, num_categories: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits and log-probabilities of rows, by onnxruntime."""
    numbers = [Column(f"x{i}", "number") for i in range(rows.numbers.shape[1])]
    names = tuple(map(str, range(1, num_categories + 1)))
    codes = [Column(f"c{i}", "category", names) for i in range(rows.codes.shape[1])]
    graph = Graph(TableSchema((*numbers, *codes), named=True), {})
    logits = add_trees(graph, trees.read(), trees.base, [num_categories] * len(codes))
    logs = add_log_probabilities(graph, logits, trees.num_classes)
    kinds = {"logits": (logits, trees.num_classes - 1), "logs": (logs, trees.num_classes)}
    ends = {key: (name, TensorProto.DOUBLE, ["rows", size]) for key, (name, size) in kinds.items()}
    session = onnxruntime.InferenceSession(graph.finished(ends).SerializeToString())
    feed = {f"x{i}": rows.numbers[:, i].copy() for i in range(len(numbers))}
    feed |= {
        f"c{i}": np.array(["" if code == 0 else str(code) for code in column], dtype=object)
        for i, column in enumerate(rows.codes.T)
    }
    return tuple(session.run(["logits", "logs"], feed))


def made(seed: int, n: int, num_classes: int, num_categories: int, gaps: bool) -> TreeRows:
    generator = np.random.default_rng(seed)
    numbers = generator.normal(size=(n, 3))
    codes = generator.integers(0, num_categories + 1, size=(n, 2 if num_categories else 0))
    signal = numbers[:, 0] - 2 * (numbers[:, 1] > 0.3)
    if num_categories:
        signal = signal + (codes[:, 0] % 3 == 1) - (codes[:, 1] % 2)
    edges = np.quantile(signal, np.arange(1, num_classes) / num_classes)
    ranks = np.digitize(signal + generator.normal(size=n) / 4, edges)
    if gaps:
        numbers[generator.random(numbers.shape) < 0.1] = np.nan
    return TreeRows(numbers, codes, ranks)


@pytest.mark.parametrize(
    ("num_classes", "num_categories", "gaps"),
    [(2, 0, False), (3, 4, True), (5, 80, False), (30, 4, True)],
)
def test_logits_are_those_of_lightgbm(num_classes: int, num_categories: int, gaps: bool) -> None:
    """Gaps too where there were none in training, which then are 0, and codes never seen."""
    rows = made(0, 600, num_classes, num_categories, gaps)
    trees = fit_trees(rows, num_classes, settings=TreeSettings(rounds=40))
    fresh = made(1, 500, num_classes, num_categories, True)
    logits, logs = run(trees, fresh, num_categories)
    np.testing.assert_allclose(logits, trees.logits(fresh.numbers, fresh.codes), atol=1e-5)
    expected = trees.log_probabilities(fresh.numbers, fresh.codes)
    np.testing.assert_allclose(np.exp(logs), np.exp(expected), atol=1e-5)
    assert (np.diff(logits, axis=1) <= 0).all()


def test_numbers_on_a_threshold_go_the_same_way() -> None:
    rows = made(0, 400, 4, 0, False)
    trees = fit_trees(rows, 4, settings=TreeSettings(rounds=20))
    splits = [
        (column, value)
        for tree in trees.read()
        for column, value in zip(tree.columns, tree.thresholds, strict=True)
        if column < 3
    ]
    numbers = np.zeros((len(splits), 3))
    for row, (column, value) in enumerate(splits):
        numbers[row, column] = value
    on_edge = TreeRows(numbers, np.zeros((len(splits), 0), dtype=np.int64), np.zeros(len(splits)))
    logits, _ = run(trees, on_edge, 0)
    np.testing.assert_allclose(logits, trees.logits(numbers, on_edge.codes), atol=1e-5)


def test_without_a_tree_the_shares_remain() -> None:
    rows = TreeRows(np.zeros((50, 1)), np.zeros((50, 0), dtype=np.int64), np.arange(50) % 3)
    trees = fit_trees(rows, 3, settings=TreeSettings(rounds=5))
    logits, logs = run(trees, rows, 0)
    np.testing.assert_allclose(logits, trees.logits(rows.numbers, rows.codes), atol=1e-12)
    np.testing.assert_allclose(logits, np.tile(trees.base, (50, 1)), atol=1e-3)
    np.testing.assert_allclose(np.exp(logs).sum(1), 1)
