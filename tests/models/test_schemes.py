"""The four schemes around classifiers of all kinds: equality with peers, and no leak of copies."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import echelon
from echelon.functional import coral_loss
from echelon.models.schemes import SCHEMES, fit_scheme

CONSISTENT = {"conditional", "conditional_augmented"}
every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


def exact() -> LogisticRegression:
    return LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=1000)


def made(n: int = 200, num_classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    latent = x @ [1.0, -0.7, 0.0] + np.sin(2 * x[:, 2]) + 0.7 * rng.logistic(size=n)
    edges = np.quantile(latent, np.arange(1, num_classes) / num_classes)
    return x, np.digitize(latent, edges)


def mord_fit(x: np.ndarray, ranks: np.ndarray):
    mord = pytest.importorskip("mord")
    with warnings.catch_warnings():  # it uses options that SciPy is about to drop
        warnings.simplefilter("ignore")
        return mord.LogisticAT(alpha=1.0, max_iter=10_000).fit(x, ranks)


def exceedance(log_probabilities: np.ndarray) -> np.ndarray:
    return np.exp(log_probabilities)[:, ::-1].cumsum(1)[:, ::-1][:, 1:]


# ---- equality with peers and by definition ---------------------------------------------------


def test_independent_equals_frank_hall_of_skordinal() -> None:
    classifiers = pytest.importorskip("skordinal.classifiers")
    x, ranks = made()
    theirs = classifiers.OrdinalDecomposition(estimator=exact(), decision_method="frank_hall")
    theirs.fit(x, ranks)
    expected = np.column_stack([task.predict_proba(x)[:, 1] for task in theirs.estimators_])
    fit = fit_scheme(exact(), "independent", x, ranks, 4)
    np.testing.assert_allclose(fit.task_probabilities(x), expected, atol=1e-10)


def test_conditional_is_the_chain_rule_over_corn_subsets() -> None:
    x, ranks = made()
    fit = fit_scheme(exact(), "conditional", x, ranks, 4)
    p = np.column_stack(
        [exact().fit(x[ranks >= k], ranks[ranks >= k] > k).predict_proba(x)[:, 1] for k in range(3)]
    )
    np.testing.assert_allclose(fit.task_probabilities(x), p, atol=1e-12)
    np.testing.assert_allclose(exceedance(fit.log_probabilities(x)), p.cumprod(1), atol=1e-7)


def test_conditional_augmented_is_the_chain_rule_over_one_classifier() -> None:
    x, ranks = made()
    tree = DecisionTreeClassifier(min_samples_leaf=5)
    fit = fit_scheme(tree, "conditional_augmented", x, ranks, 4)
    copies = (ranks[:, None] >= np.arange(3)).sum() / len(x)
    own = DecisionTreeClassifier(
        min_samples_leaf=int(np.ceil(5 * copies)), min_samples_split=int(np.ceil(2 * copies))
    )
    own.set_params(random_state=0)
    fit.classifiers[0].set_params(random_state=0)
    assert fit.classifiers[0].get_params() == own.get_params()
    asked = np.column_stack([np.repeat(x, 3, 0), np.tile(np.arange(3.0), len(x))])
    p = fit.classifiers[0].predict_proba(asked)[:, 1].reshape(-1, 3)
    np.testing.assert_allclose(fit.task_probabilities(x), p)
    np.testing.assert_allclose(exceedance(fit.log_probabilities(x)), p.cumprod(1), atol=1e-6)


def test_a_linear_model_on_all_thresholds_is_mord() -> None:
    """One-hot thresholds of a large scale are hardly penalised, as mord's are not at all."""
    x, ranks = made()
    theirs = mord_fit(x, ranks)
    expected = 1 / (1 + np.exp(theirs.theta_ - (x @ theirs.coef_)[:, None]))
    fit = fit_scheme(exact(), "augmented", x, ranks, 4, threshold_scale=1e3)
    np.testing.assert_allclose(fit.task_probabilities(x), expected, atol=1e-5)
    as_usual = fit_scheme(exact(), "augmented", x, ranks, 4).task_probabilities(x)
    np.testing.assert_allclose(as_usual, expected, atol=1e-3)


def test_coral_with_a_penalty_is_mord() -> None:
    x, ranks = made()
    features, labels = torch.from_numpy(x), torch.from_numpy(ranks)

    def loss(packed: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.from_numpy(packed).requires_grad_()
        logits = (features @ theta[:3]).unsqueeze(1) + theta[3:]
        value = coral_loss(logits, labels, reduction="sum") + theta[:3].square().sum() / 2
        (gradient,) = torch.autograd.grad(value, theta)
        return value.item(), gradient.numpy()

    ours = optimize.minimize(loss, np.zeros(6), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    theirs = mord_fit(x, ranks)
    np.testing.assert_allclose(ours, np.append(theirs.coef_, -theirs.theta_), atol=1e-5)


@every_scheme
@pytest.mark.parametrize(
    "classifier",
    [
        exact(),
        RandomForestClassifier(10, random_state=0),
        HistGradientBoostingClassifier(max_iter=10),
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), GaussianNB()),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_with_two_classes_every_scheme_is_the_classifier(scheme: str, classifier) -> None:
    x, ranks = made(100, 2)
    expected = classifier.fit(x, ranks).predict_proba(x).clip(1e-7, 1 - 1e-7)
    found = fit_scheme(classifier, scheme, x, ranks, 2)
    np.testing.assert_allclose(np.exp(found.log_probabilities(x)), expected, atol=1e-12)


# ---- the curve -------------------------------------------------------------------------------


@every_scheme
@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 40),
    num_classes=st.integers(2, 7),
    which=st.integers(0, 3),
)
def test_any_table_gives_curves(
    scheme: str, seed: int, n: int, num_classes: int, which: int
) -> None:
    """Also with classes that are absent, subsets of one class, and one row."""
    rng = np.random.default_rng(seed)
    x, ranks = rng.normal(size=(n, 2)), rng.integers(0, num_classes, n)
    classifier = [
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=3),
        GaussianNB(),
        HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2),
    ][which]
    fit = fit_scheme(classifier, scheme, x, ranks, num_classes)
    logs = fit.log_probabilities(x)
    assert logs.shape == (n, num_classes)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(1), 1, atol=1e-9)
    assert np.diff(exceedance(logs), axis=1).max(initial=0) <= 1e-12


def test_a_subset_of_one_class_is_a_constant() -> None:
    x = np.arange(8.0)[:, None]
    fit = fit_scheme(exact(), "conditional", x, np.array([0, 0, 1, 1, 2, 2, 2, 2]), 4)
    assert fit.classifiers[2] == pytest.approx(0.5 / 5)  # 4 rows reach it, none goes on
    nobody = fit_scheme(exact(), "conditional", x, np.array([0, 0, 1, 1, 0, 0, 1, 1]), 4)
    assert nobody.classifiers[1:] == (pytest.approx(0.5 / 5), 0.5)
    shared = fit_scheme(exact(), "conditional_augmented", x, np.array([0, 0, 1, 1, 0, 0, 1, 1]), 4)
    np.testing.assert_array_equal(shared.reached, [True, True, False])
    np.testing.assert_array_equal(shared.task_probabilities(x)[:, 2], 0.5)


def test_crossing_answers_are_sorted_and_measured() -> None:
    x, ranks = made(60, 6)
    fit = fit_scheme(DecisionTreeClassifier(random_state=0), "independent", x, ranks, 6)
    new = made(100, seed=1)[0]
    answers = fit.task_probabilities(new)
    assert (np.diff(answers, axis=1) > 0).any()
    assert (fit.curve(new).crossings() > 0).any()
    counts = (answers > 0.5).sum(1)
    np.testing.assert_array_equal((exceedance(fit.log_probabilities(new)) > 0.5).sum(1), counts)


@pytest.mark.parametrize("name", ["hist", "forest", "lightgbm"])
def test_no_answer_of_a_constrained_classifier_rises(name: str) -> None:
    x, ranks = made(300, 8)
    x[::7, 1] = np.nan if name != "forest" else 0.0
    if name == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        classifier = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1)
    elif name == "hist":
        classifier = HistGradientBoostingClassifier(max_iter=20)
    else:
        classifier = RandomForestClassifier(20, random_state=0)
    fit = fit_scheme(classifier, "augmented", x, ranks, 8)
    new = np.random.default_rng(1).normal(size=(500, 3)) * 3
    assert np.diff(fit.task_probabilities(new), axis=1).max() <= 1e-12


def test_forests_with_missing_values_go_without_the_constraint() -> None:
    x, ranks = made(200, 4)
    x[::5, 0] = np.nan
    forest = RandomForestClassifier(5, random_state=0)
    logs = fit_scheme(forest, "augmented", x, ranks, 4).log_probabilities(x)
    assert np.diff(exceedance(logs), axis=1).max() <= 1e-12


# ---- rows ------------------------------------------------------------------------------------


@every_scheme
def test_weights_are_copies(scheme: str) -> None:
    x, ranks = made(120)
    times = np.random.default_rng(0).integers(0, 3, len(x))
    weighted = fit_scheme(exact(), scheme, x, ranks, 4, weight=times)
    copied = fit_scheme(exact(), scheme, np.repeat(x, times, 0), np.repeat(ranks, times), 4)
    np.testing.assert_allclose(
        weighted.task_probabilities(x), copied.task_probabilities(x), atol=1e-8
    )


@every_scheme
def test_frames_with_categories_and_missing_values(scheme: str) -> None:
    x, ranks = made(200)
    frame = pd.DataFrame({"a": x[:, 0], "b": pd.Categorical(np.digitize(x[:, 1], [-1, 0, 1]))})
    frame.loc[::9, "a"] = np.nan
    frame.index = frame.index[::-1]  # an index must not matter
    boosted = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype")
    fit = fit_scheme(boosted, scheme, frame, ranks, 4)
    assert np.isfinite(fit.log_probabilities(frame)).all()
    marked = HistGradientBoostingClassifier(max_iter=10, categorical_features=[False, True])
    codes = frame.assign(b=frame["b"].cat.codes).to_numpy(float)
    same = fit_scheme(marked, scheme, codes, ranks, 4)
    np.testing.assert_allclose(same.log_probabilities(codes), fit.log_probabilities(frame))


@every_scheme
def test_sparse_rows_are_the_dense_ones(scheme: str) -> None:
    x, ranks = made(100)
    x[x < 0] = 0
    dense = fit_scheme(exact(), scheme, x, ranks, 4).task_probabilities(x)
    thin = sparse.csr_matrix(x)
    solver = LogisticRegression(tol=1e-10, max_iter=5000)
    found = fit_scheme(solver, scheme, thin, ranks, 4).task_probabilities(thin)
    np.testing.assert_allclose(found, dense, atol=1e-5)


def test_steps_of_a_pipeline_see_the_rows_and_not_their_copies() -> None:
    x, ranks = made(100)
    fit = fit_scheme(make_pipeline(StandardScaler(), exact()), "augmented", x, ranks, 4)
    np.testing.assert_allclose(fit.preprocessing[0].mean_, x.mean(0))
    assert fit.preprocessing[0].n_samples_seen_ == 100
    assert fit.classifiers[0].n_features_in_ == 3 + 3


# ---- copies do not leak ----------------------------------------------------------------------


def test_early_stopping_sees_whole_rows_only() -> None:
    """Labels that say nothing: with copies on both sides, stopping would come late."""
    rng = np.random.default_rng(0)
    x, ranks = rng.normal(size=(400, 5)), rng.integers(0, 6, 400)
    boosted = HistGradientBoostingClassifier(
        early_stopping=True, max_iter=200, min_samples_leaf=1, random_state=0
    )
    fit = fit_scheme(boosted, "augmented", x, ranks, 6)
    assert fit.classifiers[0].n_iter_ < 40
    given = fit_scheme(
        boosted, "augmented", x[:300], ranks[:300], 6, validation=(x[300:], ranks[300:])
    )
    assert given.classifiers[0].n_iter_ < 40


# ---- the choice, and what is refused ---------------------------------------------------------


@pytest.mark.parametrize(
    ("classifier", "scheme"),
    [
        (exact(), "conditional"),
        (make_pipeline(StandardScaler(), exact()), "conditional"),
        (RandomForestClassifier(3), "conditional_augmented"),
        (HistGradientBoostingClassifier(), "augmented"),
        (GradientBoostingClassifier(), "conditional_augmented"),
        (GaussianNB(), "conditional_augmented"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_scheme_follows_the_classifier(classifier, scheme: str) -> None:
    x, ranks = made(60)
    assert fit_scheme(classifier, "auto", x, ranks, 4).scheme == scheme


class Silent(ClassifierMixin, BaseEstimator):
    """Says a label and no more."""

    def fit(self, X, y):  # noqa: N803
        return self

    def predict(self, X):  # noqa: N803
        return np.zeros(len(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scheme": "both"}, "scheme must be one of auto, independent, conditional.*got 'both'"),
        ({"coding": "ordinal"}, "coding must be one of auto, numeric, one_hot; got 'ordinal'"),
        ({"estimator": LinearSVC(), "scheme": "conditional"}, "conditional multiplies probabil"),
        ({"task_weight": np.ones((3, 2))}, "choose scheme='augmented' or 'independent'"),
        ({"estimator": Silent()}, r"Silent has neither: try CalibratedClassifierCV"),
        ({"estimator": LinearRegression()}, "must be a classifier.*got LinearRegression"),
        ({"estimator": GaussianNB}, r"got a class: pass GaussianNB\(\)"),
        ({"estimator": "forest"}, "with fit and get_params; got str"),
        ({"ranks": np.array([0, 1, 2])}, "4 rows and ranks 3"),
    ],
)
def test_what_is_refused(change: dict, message: str) -> None:
    good = {
        "estimator": GaussianNB(),
        "scheme": "auto",
        "features": np.zeros((4, 1)),
        "ranks": np.array([0, 1, 2, 1]),
        "num_classes": 3,
    }
    with pytest.raises(ValueError, match=message):
        fit_scheme(**{**good, **change})


def test_the_schemes_are_those_of_the_methods() -> None:
    for scheme in SCHEMES.values():
        assert echelon.METHODS[scheme.method].has_binary_tasks
        assert echelon.METHODS[scheme.method].can_cross == (scheme.name not in CONSISTENT)
