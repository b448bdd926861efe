"""The head of a forest: trees that are known, leaves that update themselves, fits."""

import copy

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier

import echelon
from echelon.data import make_friedman
from echelon.heads import ForestHead


def grown_tree(depth: int, seed: int) -> tuple[DecisionTreeClassifier, np.ndarray]:
    data = make_friedman(400, num_classes=4, seed=seed)
    tree = DecisionTreeClassifier(max_depth=depth, random_state=seed)
    return tree.fit(data.features.astype(np.float32), data.ranks), data.features


def copy_into(head: ForestHead, trees: list[DecisionTreeClassifier], steepness: float) -> None:
    """Put trees of one depth into the units and leaves of a head; left is `<=`."""
    splits = 2**head.depth - 1
    with torch.no_grad():
        head.split.weight.zero_()
        head.split.bias.zero_()
        for t, fitted in enumerate(trees):
            inner = fitted.tree_

            def fill(node: int, place: int, level: int, t=t, inner=inner) -> None:
                is_leaf = inner.children_left[node] == -1
                if level == head.depth:
                    shares = torch.tensor(inner.value[node, 0]).clamp(min=1e-30)
                    head.leaves[t, place - splits] = shares.log()
                    return
                if not is_leaf:
                    unit = t * splits + place
                    head.split.weight[unit, inner.feature[node]] = -steepness
                    head.split.bias[unit] = steepness * inner.threshold[node]
                ways = (inner.children_left[node], inner.children_right[node])
                for side in (0, 1):
                    fill(node if is_leaf else ways[side], 2 * place + 1 + side, level + 1)

            fill(0, 0, 0)


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_in_its_hard_limit_it_is_the_mean_of_decision_trees(depth: int) -> None:
    fitted = [grown_tree(depth, seed)[0] for seed in range(3)]
    rows = make_friedman(2000, num_classes=4, seed=9).features
    for trees in (fitted[:1], fitted):
        head = ForestHead(rows.shape[1], 4, trees=len(trees), depth=depth, dtype=torch.float64)
        copy_into(head, trees, steepness=1e4)
        expected = np.mean([tree.predict_proba(rows) for tree in trees], axis=0)
        # away from thresholds: a unit of 1e4 times the distance decides nothing below 1e-2
        far = np.ones(len(rows), dtype=bool)
        for tree in trees:
            inside = tree.tree_.feature >= 0
            ways = rows[:, tree.tree_.feature[inside]] - tree.tree_.threshold[inside]
            far &= (np.abs(ways) > 2e-3).all(axis=1)
        assert far.sum() > 500
        found = head(torch.from_numpy(rows).double()).exp().detach().numpy()
        np.testing.assert_allclose(found[far], expected[far], atol=1e-6)


def test_every_split_reads_one_of_fewer_units_and_a_copy_reads_the_same() -> None:
    head = ForestHead(6, 4, trees=3, depth=4, units=10)
    assert head.split.out_features == 10
    assert torch.bincount(head.read, minlength=10).tolist() == [5] * 5 + [4] * 5
    assert "read" not in head.state_dict()
    other = ForestHead(6, 4, trees=3, depth=4, units=10)
    other.load_state_dict(head.state_dict())
    features = torch.randn(5, 6)
    assert torch.equal(head(features), other(features))


def test_one_tree_without_splits() -> None:
    head = ForestHead(6, 4, trees=1, depth=0)
    logits = head(torch.randn(5, 6))
    torch.testing.assert_close(logits, head.leaves[0, 0].log_softmax(-1).expand(5, 4))


@pytest.mark.parametrize("leaves", ["softmax", "bernoulli"])
def test_leaves_update_themselves_and_no_optimiser_moves_them(leaves: str) -> None:
    torch.manual_seed(0)
    method = echelon.method("forest", 4, leaves=leaves, leaf_update="em", trees=2, depth=3)
    head, features = method.head(3), torch.randn(200, 3)
    ranks = (1.5 + features[:, 0] * 2).clamp(0, 3).long()
    optimiser = torch.optim.SGD(head.parameters(), lr=0.0, weight_decay=0.5)
    before = head.leaves.detach().clone()
    losses = []
    for _ in range(60):
        loss = method.loss(head(features), ranks)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        assert head.leaves.grad is None
    assert not torch.equal(head.leaves, before)
    assert (np.diff(losses) <= 1e-6).all()
    assert losses[-1] < losses[0] - 0.01
    shares = head.leaves.detach()
    sums = shares.sum(-1) if leaves == "softmax" else shares.unflatten(-1, (2, -1)).sum(-2)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_a_copied_head_updates_its_own_leaves() -> None:
    method = echelon.method("forest", 4, leaf_update="em", trees=2, depth=3)
    head = method.head(3)
    twin, before = copy.deepcopy(head), head.leaves.detach().clone()
    method.loss(twin(torch.randn(20, 3)), torch.randint(4, (20,))).backward()
    assert torch.equal(head.leaves, before)
    assert not torch.equal(twin.leaves, before)
    assert twin.leaves.grad is None


def test_no_update_outside_training() -> None:
    method = echelon.method("forest", 4, leaves="bernoulli")
    head = method.head(3).eval()
    before = head.leaves.detach().clone()
    with torch.no_grad():
        head(torch.randn(20, 3))
    assert torch.equal(head.leaves, before)


def test_several_devices_are_refused_where_leaves_update_themselves() -> None:
    assert echelon.method("forest", 4).needs_one_device is None
    for options in ({"leaf_update": "em"}, {"leaves": "bernoulli"}):
        reason = echelon.method("forest", 4, **options).needs_one_device
        assert reason == "updates its leaves from the rows of one process"
    assert (
        echelon.method("forest", 4, leaves="bernoulli", leaf_update="gradient").needs_one_device
        is None
    )


@pytest.mark.parametrize("options", [{}, {"leaf_update": "em"}, {"leaves": "bernoulli"}], ids=str)
def test_a_fit_learns_and_is_saved_with_its_leaves(options: dict[str, str], tmp_path) -> None:
    data = make_friedman(600, num_classes=4, seed=0)
    model = echelon.OrdinalClassifier(
        "forest", method_options=options, random_state=0, device="cpu",
        settings={"max_epochs": 8, "refit": False},
    )  # fmt: skip
    model.fit(data.features, data.ranks)
    new = make_friedman(600, num_classes=4, seed=1)
    assert np.abs(model.predict(new.features) - new.ranks).mean() < 0.6
    model.save(tmp_path / "forest.echelon")
    again = echelon.load(tmp_path / "forest.echelon")
    np.testing.assert_array_equal(
        again.predict_proba(new.features), model.predict_proba(new.features)
    )


@pytest.mark.parametrize("depth", [0, 2])
def test_a_forest_is_exported_for_any_number_of_rows(depth: int, tmp_path) -> None:
    data = make_friedman(120, num_classes=3, seed=0)
    model = echelon.OrdinalClassifier(
        "forest", "linear", method_options={"depth": depth}, settings={"max_epochs": 1},
        random_state=0, device="cpu",
    )  # fmt: skip
    model.fit(data.features, data.ranks).export_onnx(tmp_path / "m.onnx")  # compares 64 rows
    assert (tmp_path / "m.onnx").stat().st_size > 0
