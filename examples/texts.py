"""Reviews and their stars: an LSTM on words, beside a column of numbers."""

import numpy as np
import pandas as pd

import echelon
from echelon.evaluation.metrics import mae

data = echelon.data.make_reviews(700, num_classes=3)  # or a table with a column of texts
table = pd.DataFrame({"review": data.texts, "length": [len(text) for text in data.texts]})
stars = data.ranks + 1
model = echelon.OrdinalClassifier(
    "corn",
    {"text": "lstm", "table": "linear"},
    text="review",
    settings={"max_epochs": 8, "learning_rate": 5e-3},
    random_state=0,
)
model.fit(table[:600], stars[:600])

test, truth = table[600:], stars[600:]
middle = np.median(stars[:600])
print(f"mean absolute error {mae(truth, model.predict(test)):.2f} stars")
print(f"  always {middle:.0f} stars: {np.abs(truth - middle).mean():.2f}")
for text, label in zip(test["review"][:3], model.predict(test[:3]), strict=True):
    print(f"{label} stars: {text[:60]}")
