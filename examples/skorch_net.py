"""skorch: a network in scikit-learn's tools, with the loss and the label of CORN."""

import numpy as np
import skorch
import torch
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import echelon
from echelon.evaluation.metrics import mae

corn = echelon.method("corn", num_classes=4)


class OrdinalNet(skorch.NeuralNetClassifier):
    """The median of the curve; skorch would take the largest logit, which is no reading of CORN."""

    def predict(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        """Ranks (n,)."""
        return echelon.RankCurve(torch.as_tensor(self.predict_proba(X)).log()).median().numpy()


torch.manual_seed(0)
data = echelon.data.make_friedman(400, num_classes=4)
features, ranks = data.features.astype(np.float32), data.ranks
net = OrdinalNet(
    torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)),
    criterion=echelon.OrdinalLoss, criterion__method="corn", criterion__num_classes=4,
    predict_nonlinearity=lambda logits: corn.curve(logits).probabilities,
    max_epochs=15, lr=0.02, batch_size=32, optimizer=torch.optim.Adam, train_split=None, verbose=0,
    classes=[0, 1, 2, 3],
)  # fmt: skip
predicted = cross_val_predict(make_pipeline(StandardScaler(), net), features, ranks, cv=3)
print(f"mean absolute error {mae(ranks, predicted):.3f} over three folds")
