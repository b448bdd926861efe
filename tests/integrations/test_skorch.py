"""skorch: our loss as its criterion, our curve as its probabilities, in scikit-learn's tools."""

import numpy as np
import pytest
import skorch
import torch
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import echelon
from echelon.data import make_friedman
from echelon.evaluation import scorers

K = 4


class Net(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, K - 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class OrdinalNet(skorch.NeuralNetClassifier):
    """The middle of the curve instead of skorch's argmax."""

    def predict(self, X):  # noqa: N803
        probabilities = torch.as_tensor(self.predict_proba(X))
        return echelon.RankCurve(probabilities.log()).median().numpy()


def probabilities(logits: torch.Tensor) -> torch.Tensor:
    return echelon.method("corn", K).curve(logits).probabilities


@pytest.fixture
def net() -> OrdinalNet:
    torch.manual_seed(0)
    return OrdinalNet(
        Net, criterion=echelon.OrdinalLoss, criterion__method="corn", criterion__num_classes=K,
        predict_nonlinearity=probabilities, max_epochs=15, lr=0.02, verbose=0, batch_size=32,
        optimizer=torch.optim.Adam, train_split=None, classes=list(range(K)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    made = make_friedman(240, num_classes=K, seed=0)
    return made.features.astype(np.float32), made.ranks.astype(np.int64)


def test_probabilities_are_those_of_the_curve_and_labels_its_median(net, data) -> None:
    features, ranks = data
    net.fit(features, ranks)
    p = net.predict_proba(features)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    curve = echelon.method("corn", K).curve(net.forward(features))
    np.testing.assert_array_equal(net.predict(features), curve.median().numpy())
    assert np.abs(net.predict(features) - ranks).mean() < 0.5
    # what skorch would do with CORN's logits by itself is another thing
    assert (net.forward(features).argmax(1).numpy() != net.predict(features)).mean() > 0.3


def test_pipelines_folds_and_searches(net, data) -> None:
    features, ranks = data
    pipeline = make_pipeline(StandardScaler(), net)
    predicted = cross_val_predict(pipeline, features, ranks, cv=2)
    assert predicted.shape == ranks.shape
    search = GridSearchCV(
        net, {"module__width": [4, 16]}, cv=2, scoring=scorers.neg_mae, refit=False
    )
    search.fit(features, ranks)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
