"""A table of your own: words, gaps and an order of labels; a model, an interval and a file."""

import numpy as np
import pandas as pd

import echelon
from echelon.evaluation.metrics import mae, quadratic_weighted_kappa

# In place of these lines: table = pd.read_csv("patients.csv")
rng = np.random.default_rng(0)
table = pd.DataFrame({"age": rng.uniform(20, 80, 1200), "sex": rng.choice(["f", "m"], 1200)})
table["dose"] = np.where(rng.random(1200) < 0.1, np.nan, rng.uniform(0, 2, 1200))
score = (
    table["age"] / 20 + (table["sex"] == "m") - table["dose"].fillna(1) + rng.logistic(size=1200)
)
table["pain"] = np.array(["none", "mild", "severe"])[np.digitize(score, [1.0, 3.0])]

ORDER = ["none", "mild", "severe"]  # which no program can know
train, keep, test = table[:800], table[800:1000], table[1000:]
model = echelon.OrdinalBoosting(classes=ORDER, random_state=0)
model.fit(train.drop(columns="pain"), train["pain"])

new = test.drop(columns="pain")
truth, predicted = (
    echelon.as_ranks(labels, ORDER) for labels in (test["pain"], model.predict(new))
)
print(f"mean absolute error {mae(truth, predicted):.2f} classes")
print(f"quadratic weighted kappa {quadratic_weighted_kappa(truth, predicted):.2f}")

# Intervals with a guarantee need rows that were used for nothing else.
model.conformalize(keep.drop(columns="pain"), keep["pain"])
shown = new.head(5).assign(
    predicted=model.predict(new[:5]),
    severe=model.predict_proba(new[:5])[:, 2].round(2),
    interval=[" to ".join(pair) for pair in model.predict_interval(new[:5], coverage=0.9)],
)
print(shown.to_string(index=False))

model.save("pain.echelon")  # one file, safe to open anywhere
assert (echelon.load("pain.echelon").predict(new) == model.predict(new)).all()
