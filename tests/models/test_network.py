"""The estimator, as users of scikit-learn and pandas use it."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import echelon
from echelon import OrdinalClassifier
from echelon.data import make_friedman
from echelon.storage.bundle import read_bundle
from echelon.training.recipes import SETTING_NAMES
from tests.cases import THOROUGH
from tests.weighting import rows, weighted_share

QUICK = {"settings": {"max_epochs": 3}, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def data():
    return make_friedman(600, num_classes=4, seed=5)


BACKBONES = ("mlp", "tabm", "linear")


PAIRS = [  # each method with one backbone; with all of them in `make test-slow`
    (method, backbone)
    for i, method in enumerate(echelon.METHODS)
    for j, backbone in enumerate(BACKBONES)
    if THOROUGH or i % 3 == j
]


@pytest.mark.parametrize(("method", "backbone"), PAIRS)
def test_every_method_with_a_backbone(data, method: str, backbone: str) -> None:
    if backbone == "tabm" and echelon.METHODS[method].couples_rows:
        with pytest.raises(ValueError, match="couples the rows"):
            OrdinalClassifier(method, backbone, **QUICK).fit(data.features, data.ranks)
        return
    model = OrdinalClassifier(method, backbone, **QUICK).fit(data.features, data.ranks)
    probabilities = model.predict_proba(data.features)
    exceedance = model.predict_exceedance(data.features)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    assert (np.diff(exceedance, axis=1) <= 0).all()
    assert set(model.predict(data.features)) <= set(model.classes_)
    assert len(model.history_) == 3


def test_learns(data) -> None:
    model = OrdinalClassifier(random_state=0, device="cpu").fit(data.features, data.ranks)
    fresh = make_friedman(5000, num_classes=4, seed=6)
    best = (fresh.bayes_probabilities.cumsum(1) < 0.5).sum(1)
    floor = np.abs(best - fresh.ranks).mean()
    found = np.abs(model.predict(fresh.features) - fresh.ranks).mean()
    constant = np.abs(fresh.ranks - 1.5).mean()
    assert floor <= found < floor + 0.25 * (constant - floor)


def test_frames_with_everything(data) -> None:
    frame = pd.DataFrame(data.features[:, :5], columns=list("abcde"))
    frame["a"] = frame["a"].mask(frame["b"] > 0.9)
    frame["kind"] = np.where(frame["c"] > 0.5, "big", "small")
    frame.loc[::7, "kind"] = None
    y = pd.Categorical.from_codes(data.ranks, ["worst", "bad", "good", "best"], ordered=True)
    model = OrdinalClassifier(backbone="mlp", **QUICK).fit(frame, y)
    assert model.classes_.tolist() == ["worst", "bad", "good", "best"]
    assert model.feature_names_in_.tolist() == list(frame.columns)
    expected = model.predict_proba(frame)
    np.testing.assert_array_equal(model.predict_proba(frame[frame.columns[::-1]]), expected)
    assert np.isfinite(model.predict_proba(frame.assign(kind="never seen"))).all()
    assert set(model.predict(frame)) <= {"worst", "bad", "good", "best"}


def test_same_seed_same_bits_and_the_global_generator_is_left_alone(data) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, other = (
        OrdinalClassifier(backbone="mlp", **QUICK, backbone_options={"dropout": 0.1}).fit(
            data.features, data.ranks
        )
        for _ in range(2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    for mine, yours in zip(
        one.network_.state_dict().values(), other.network_.state_dict().values(), strict=True
    ):
        assert torch.equal(mine, yours)
    third = clone(one).set_params(random_state=1).fit(data.features, data.ranks)
    assert not np.array_equal(third.predict_proba(data.features), one.predict_proba(data.features))


def test_an_absent_class_and_labels_with_gaps(data) -> None:
    y = data.ranks * 10
    model = OrdinalClassifier(backbone="mlp", classes=[0, 5, 10, 20, 30], **QUICK).fit(
        data.features, y
    )
    assert model.predict_proba(data.features).shape == (600, 5)
    with pytest.raises(ValueError, match="7 in y is not in classes"):
        OrdinalClassifier(backbone="mlp", classes=[0, 10, 20, 30], **QUICK).fit(
            data.features, np.where(y, y, 7)
        )


def test_scikit_learns_relabelling_cannot_scramble_the_order(data) -> None:
    names = np.array(["worst", "bad", "good", "best"])
    model = OrdinalClassifier(backbone="mlp", classes=list(names), **QUICK)
    with pytest.raises(ValueError, match="encoded the labels by letter"):
        cross_val_predict(
            model, data.features, names[data.ranks], method="predict_proba", cv=2,
        )  # fmt: skip
    labels = cross_val_predict(model, data.features, names[data.ranks], cv=2)
    assert set(labels) <= set(names)


def test_decisions_need_no_retraining(data) -> None:
    model = OrdinalClassifier(backbone="mlp", **QUICK).fit(data.features, data.ranks)
    curve = model.curve(data.features)
    for decision in ("median", "mean", "mode"):
        model.set_params(decision=decision)
        expected = curve.label(decision).numpy()
        np.testing.assert_array_equal(model.predict(data.features), expected)
    dear = np.ones((4, 4)) - np.eye(4)
    dear[3, :3] = 50  # missing the top is dear
    model.set_params(decision=dear)
    assert (model.predict(data.features) == 3).mean() > 0.5


def test_grid_search_and_pipeline(data) -> None:
    pipeline = make_pipeline(StandardScaler(), OrdinalClassifier(backbone="mlp", **QUICK))
    grid = {"ordinalclassifier__method": ["corn", "ce"]}
    search = GridSearchCV(pipeline, grid, cv=2, scoring="neg_mean_absolute_error")
    search.fit(data.features, data.ranks)
    assert search.best_params_["ordinalclassifier__method"] in ("corn", "ce")


def test_weights(data) -> None:
    weight = np.where(data.ranks == 3, 100.0, 1.0)
    heavy = OrdinalClassifier(backbone="mlp", **QUICK).fit(
        data.features, data.ranks, sample_weight=weight
    )
    plain = OrdinalClassifier(backbone="mlp", **QUICK).fit(data.features, data.ranks)
    by_class = OrdinalClassifier(backbone="mlp", **QUICK, class_weight={3: 100.0}).fit(
        data.features, data.ranks
    )
    assert heavy.predict(data.features).mean() > plain.predict(data.features).mean()
    np.testing.assert_array_equal(
        by_class.predict_proba(data.features), heavy.predict_proba(data.features)
    )
    equal = OrdinalClassifier(backbone="mlp", **QUICK).fit(
        data.features, data.ranks, sample_weight=[7.0] * 600
    )
    np.testing.assert_array_equal(
        equal.predict_proba(data.features), plain.predict_proba(data.features)
    )


@pytest.mark.parametrize("method", ["corn", "ce", "clm"])
def test_a_weight_is_a_weight(method: str) -> None:
    """In noise the share of a class is the weight of its rows, as exact maximum likelihood says."""
    features, ranks, weight = rows(seed=1, n=400)
    exact = LogisticRegression(C=1e6).fit(features, ranks, sample_weight=weight)
    share = exact.predict_proba(features)[:, 1].mean()  # about 0.95, and 0.025 without weights
    found = weighted_share(
        1,
        "linear",
        n=400,
        method=method,
        validation_fraction=0,
        settings={"max_epochs": 40, "learning_rate": 0.05},
    )
    assert found == pytest.approx(share, abs=0.01)


def test_balanced_classes_have_equal_shares_in_noise() -> None:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(600, 1))
    ranks = np.array([0] * 500 + [1] * 80 + [2] * 20)
    model = OrdinalClassifier(
        backbone="linear",
        class_weight="balanced",
        random_state=0,
        validation_fraction=0,
        settings={"max_epochs": 20, "learning_rate": 0.05},
    )
    shares = model.fit(features, ranks).predict_proba(features).mean(axis=0)
    np.testing.assert_allclose(shares, 1 / 3, atol=0.03)


def test_class_weights_act_on_the_validation_part(data) -> None:
    """Where only one class counts, the best epoch is the one that is best for that class."""
    held = np.arange(600) >= 300
    top = held & (data.ranks == 3)
    weighted, alone = (
        OrdinalClassifier(backbone="mlp", **QUICK, class_weight={0: 0.0, 1: 0.0, 2: 0.0}).fit(
            data.features[~held], data.ranks[~held], X_val=data.features[rows],
            y_val=data.ranks[rows],
        )
        for rows in (held, top)
    )  # fmt: skip
    key = "validation_ranked_probability_score"
    assert [row[key] for row in weighted.history_] == pytest.approx(
        [row[key] for row in alone.history_]
    )


def test_own_validation_part_and_groups(data) -> None:
    model = OrdinalClassifier(backbone="mlp", **QUICK)
    model.fit(
        data.features[:400], data.ranks[:400], X_val=data.features[400:], y_val=data.ranks[400:]
    )
    assert model.best_epoch_ in (1, 2, 3)
    model.fit(data.features, data.ranks, groups=np.arange(600) // 10)
    none = OrdinalClassifier(backbone="mlp", **QUICK, validation_fraction=0).fit(
        data.features, data.ranks
    )
    assert none.best_epoch_ is None


def test_own_network(data) -> None:
    network = nn.Sequential(nn.Linear(10, 7), nn.Tanh())
    before = network[0].weight.clone()
    model = OrdinalClassifier(backbone=network, **QUICK).fit(data.features, data.ranks)
    assert model.network_.head.in_features == 7
    assert torch.equal(network[0].weight, before)
    with pytest.raises(ValueError, match=r"features of the shape \(n, 10\)"):
        OrdinalClassifier(backbone=nn.Linear(3, 4), **QUICK).fit(data.features, data.ranks)


def test_pickles_for_workers(data) -> None:
    model = OrdinalClassifier(backbone="mlp", **QUICK).fit(data.features, data.ranks)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        copied.predict_proba(data.features), model.predict_proba(data.features)
    )


def test_the_papers_recipe(data) -> None:
    model = OrdinalClassifier("coral", recipe="paper", **QUICK).fit(data.features, data.ranks)
    assert (model.settings_.batch_size, model.settings_.learning_rate) == (64, 5e-4)
    layers = [type(layer).__name__ for layer in model.network_.backbone]
    assert layers == ["Linear", "LeakyReLU", "Dropout", "BatchNorm1d"] * 2
    assert model.network_.backbone[0].bias is None
    assert OrdinalClassifier("ce", recipe="paper", **QUICK).fit(
        data.features, data.ranks
    ).settings_.decision == "mode"  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "corm"}, "did you mean 'corn'"),
        ({"backbone": "cnn"}, "backbone must be one of linear, mlp, tabm"),
        ({"recipe": "best"}, "recipe must be one of 'default', 'paper'"),
        ({"decision": "average"}, "decision must be one of 'median', 'mean', 'mode'"),
        ({"decision": np.zeros((2, 2))}, r"cost_matrix must have the shape \(4, 4\)"),
        ({"settings": {"max_epochs": 0}}, "max_epochs must be an integer of at least 1"),
        ({"settings": {"learning_rate": -1.0}}, "learning_rate must be greater than 0"),
        ({"validation_fraction": 1.5}, "between 0 and 1"),
        ({"class_weight": "auto"}, "class_weight must be 'balanced' or a mapping.*got 'auto'"),
        (
            {"class_weight": [1.0, 2.0]},
            r"class_weight must be 'balanced' or a mapping.*\[1.0, 2.0\]",
        ),
        (
            {"class_weight": {0: -1.0}},
            "class_weight must be a finite number of at least 0.*-1.0 for 0",
        ),
        ({"class_weight": [1, 2, 3, 4]}, r"such as \{0: 1, 1: 2, 2: 3, 3: 4\}; got \[1, 2, 3, 4\]"),
        ({"settings": {"batch_size": 0}}, "batch_size must be an integer of at least 1; got 0"),
        ({"class_weight": {1: float("nan")}}, "class_weight must be a finite number"),
        ({"class_weight": {1: "2"}}, "class_weight must be a finite number"),
        ({"class_weight": dict.fromkeys(range(4), 0)}, "0 for every class that occurs"),
        ({"class_weight": {9: 1.0}}, "label 9 in y is not in classes"),
        ({"settings": {"metric": "f1"}}, "metric must be one of accuracy"),
        ({"settings": {"momentum": 1}}, "there is no setting 'momentum'"),
        ({"backbone_options": {"depth": 3}}, "does not take these options"),
        ({"method_options": {"link": "x"}}, "corn has no option 'link'"),
        (
            {"settings": {"max_epochs": 3, "learning_rate": 1e30}},
            r"loss became nan in epoch \d.*smaller learning_rate",
        ),
    ],
)
def test_wrong_parameters(data, change, message: str) -> None:
    model = OrdinalClassifier(**{**QUICK, **change})
    with pytest.raises(ValueError, match=message):
        model.fit(data.features, data.ranks)


def test_the_number_of_rows_beside_it_does_not_move_a_prediction() -> None:
    data = make_friedman(5000, num_classes=10)
    model = OrdinalClassifier(
        "ce", "tabm", settings={"max_epochs": 8}, random_state=0, device="cpu"
    )
    model.fit(data.features[:1500], data.ranks[:1500])
    together = model.predict_proba(data.features)
    alone = [model.predict_proba(some) for some in np.split(data.features, [1, 2, 30, 3000])]
    np.testing.assert_allclose(np.concatenate(alone), together, rtol=0, atol=1e-9)


def test_several_networks_share_the_time_and_give_the_mean_of_their_curves(data, tmp_path) -> None:
    options = {"max_epochs": 3, "networks": 2, "refit": False}
    model = OrdinalClassifier(
        backbone="mlp",
        settings=options,
        random_state=0,
        device="cpu",
        checkpoint_dir=tmp_path / "c",
    ).fit(data.features, data.ranks)
    table = model.schema_.read(data.features[:50])
    members = model.network_(model.readers_.inputs(table, model.network_.encoder))
    assert members.shape == (50, 2, 3)
    curves = model.network_.method.curve(members).probabilities
    assert not torch.allclose(curves[:, 0], curves[:, 1], atol=1e-3)  # each has its own weights
    mean = curves.mean(1).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(data.features[:50]), mean, atol=1e-5)
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m").predict_proba(data.features)
    np.testing.assert_array_equal(loaded, model.predict_proba(data.features))
    model.set_params(
        settings={"max_epochs": 30, "networks": 3}, time_limit=1e-9, checkpoint_dir=None
    )
    assert [len(model.fit(data.features, data.ranks).history_), model.spec_.networks] == [1, 3]


@pytest.mark.parametrize("networks", [0, 1.5, "two"])
def test_networks_are_counted_in_whole_numbers(data, networks) -> None:
    model = OrdinalClassifier(settings={"networks": networks}, device="cpu")
    with pytest.raises(ValueError, match="networks must be a whole number from 1 to 100"):
        model.fit(data.features, data.ranks)


def test_labels_of_validation_rows_need_the_rows(data) -> None:
    for given in ({"y_val": data.ranks}, {"X_val": data.features}):
        with pytest.raises(ValueError, match=r"y_val .*None; pass both or neither"):
            OrdinalClassifier(backbone="mlp", **QUICK).fit(data.features, data.ranks, **given)


def test_one_row_and_few_rows() -> None:
    with pytest.raises(ValueError, match=r"n_samples=1|at least 2 classes"):
        OrdinalClassifier(backbone="mlp", **QUICK).fit(np.zeros((1, 2)), [1])
    small = OrdinalClassifier(backbone="mlp", **QUICK).fit(np.arange(6.0).reshape(3, 2), [1, 2, 3])
    assert small.predict(np.zeros((1, 2))).shape == (1,)


def test_only_constant_columns() -> None:
    model = OrdinalClassifier(backbone="mlp", **QUICK, validation_fraction=0).fit(
        np.ones((30, 2)), [1, 2, 2] * 10
    )
    assert model.predict(np.ones((2, 2))).tolist() == [2, 2]


USE = """
import sys
import numpy as np
import echelon
model = echelon.load(sys.argv[1])
model.predict_proba(np.zeros((3, 10)))
model.export_onnx(sys.argv[2])
model.save(sys.argv[3])
print(sorted(name for name in sys.modules if name.startswith(("echelon.training", "lightning"))))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    data = make_friedman(200, num_classes=4)
    model = echelon.OrdinalClassifier(
        settings={"max_epochs": 2, "scaling": "standard"},
        random_state=0,
        device="cpu",
        backbone_options={"hidden": (8,)},
    )
    model.fit(data.features, data.ranks).save(path := tmp_path_factory.mktemp("network") / "m")
    return path


def test_a_saved_model_is_used_without_the_training_room(saved: Path, tmp_path: Path) -> None:
    """Loading, predicting, exporting and saving again import nothing that trains."""
    arguments = [str(saved), str(tmp_path / "m.onnx"), str(tmp_path / "again")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", USE, *arguments],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
    assert saved.read_bytes() == (tmp_path / "again").read_bytes()


def test_the_architecture_stands_apart_from_the_training(saved: Path) -> None:
    document = read_bundle(saved, "echelon_model").document["model"]
    assert document["network"] == {
        "method": "corn",
        "backbones": {"table": "mlp"},
        "backbone_options": {"table": {"hidden": [8]}},
        "method_options": {},
        "input_options": {},
        "scaling": "standard",
        "networks": 1,
    }
    assert document["training"]["max_epochs"] == 2
    assert not set(document["training"]) & set(document["network"])
    model = echelon.load(saved)
    assert model.spec_.backbone_options == {"table": {"hidden": (8,)}}
    assert model.settings_.max_epochs == 2


def test_a_setting_that_there_is_not_is_told_all_that_there_are() -> None:
    model = echelon.OrdinalClassifier(settings={"surprise": 1})
    data = make_friedman(50, num_classes=3)
    with pytest.raises(ValueError, match=r"no setting 'surprise'; there are: max_epochs.*scaling"):
        model.fit(data.features, data.ranks)


def test_the_parameters_are_few_and_the_docstring_says_what_all_of_them_are() -> None:
    names = set(echelon.OrdinalClassifier().get_params())
    assert len(names) <= 18
    text = echelon.OrdinalClassifier.__doc__
    listed = " ".join(line for line in text.splitlines() if re.match(r"    \w[\w, ]* : ", line))
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", listed)] == []
    assert [name for name in SETTING_NAMES if f"`{name}`" not in text] == []


def test_a_parameter_among_the_settings_is_told_its_place() -> None:
    data = make_friedman(50, num_classes=3)
    model = echelon.OrdinalClassifier(settings={"method_options": {}})
    with pytest.raises(ValueError, match="write method_options="):
        model.fit(data.features, data.ranks)


def test_the_threads_that_read_images_are_not_saved(tmp_path: Path) -> None:
    """They belong to the machine, unlike what else is said of the inputs."""
    data = make_friedman(60, num_classes=3)
    inputs = {"image": {"workers": 3, "size": 8}}
    model = echelon.OrdinalClassifier("ce", "linear", inputs=inputs, **QUICK)
    model.fit(data.features, data.ranks).save(tmp_path / "m")
    assert echelon.load(tmp_path / "m").inputs == {"image": {"size": 8}}
    assert model.inputs == inputs


@pytest.mark.parametrize("method", ["corn", "corn_without_subsets", "ornn"])
def test_many_classes_are_in_reach_of_few_steps_from_an_even_start(method: str) -> None:
    """From biases of 0 half of the rows end at each rank, and the upper ones are out of reach."""
    data = echelon.data.make_friedman(600, num_classes=40, seed=3)
    errors = {}
    for even in (True, False):
        settings = {
            "max_epochs": 4, "batch_size": 32, "learning_rate": 2e-3, "refit": False,
            "networks": 1, "even_start": even,
        }  # fmt: skip
        model = echelon.OrdinalClassifier(
            method, backbone="linear", settings=settings, random_state=0, device="cpu"
        ).fit(data.features[:400], data.ranks[:400])
        errors[even] = np.abs(model.predict(data.features[400:]) - data.ranks[400:]).mean()
    assert errors[True] < 11  # of always saying the middle: 10
    assert errors[True] <= errors[False] + 0.5
    if method != "ornn":  # whose biases of 0 are even in the middle
        assert errors[False] > 15
