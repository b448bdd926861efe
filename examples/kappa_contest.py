"""A contest that counts the quadratic weighted kappa: folds, cut-points, and a submission."""

import numpy as np
import pandas as pd

import echelon
from echelon.evaluation.cutpoints import tuned_kappa
from echelon.evaluation.metrics import quadratic_weighted_kappa

# In place of these lines: read train.csv and test.csv of the contest.
data = echelon.data.make_friedman(900, num_classes=5, noise=2.0)
frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
train, test, ranks = frame[:700], frame[700:], data.ranks[:700]

# Every row judged by a model that has not seen it: the score to trust before the last day.
model = echelon.OrdinalBoosting(rounds=60, decision="kappa", random_state=0)
curve = echelon.cross_val_curve(model, train, ranks, folds=5)
median = quadratic_weighted_kappa(ranks, curve.median().numpy())
kappa = tuned_kappa(ranks, curve.mean().numpy(), num_classes=5)
print(f"kappa over five folds: {median:.3f} with the median of each curve")
print(f"  {kappa.kappa:.3f} with cut-points, {kappa.low:.3f} to {kappa.high:.3f}")

# The last model learns from all rows; its cut-points come from rows that it held out.
model.fit(train, ranks)
submission = pd.DataFrame({"id": np.arange(len(test)), "label": model.predict(test)})
submission.to_csv("submission.csv", index=False)
print(f"submission.csv: {len(submission)} rows, kappa {model.kappa_.kappa:.3f} on held-out rows")
