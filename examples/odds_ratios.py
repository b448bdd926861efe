"""Statistics: odds ratios with intervals, and whether one of them is enough for all thresholds."""

import numpy as np
import pandas as pd

from echelon import CumulativeLinkModel

rng = np.random.default_rng(0)
survey = pd.DataFrame({"age": rng.uniform(20, 80, 600), "sex": rng.choice(["f", "m"], 600)})
score = survey["age"] / 20 + (survey["sex"] == "m") + rng.logistic(size=600)
survey["pain"] = np.digitize(score, [2.0, 4.0])

columns = survey[["age", "sex"]]
model = CumulativeLinkModel(tests=True).fit(columns, survey["pain"])
summary = model.summary()
print(summary)

ratios = summary.frame()[["ratio", "ratio_lower", "ratio_upper"]]
print("\nodds ratios\n", ratios.round(3), sep="")
print("\nproportional odds (a small p speaks against them)\n", summary.tests_frame(), sep="")
print("\nP(pain = k) at two ages, with intervals")
print(model.probabilities_at({"age": [30, 60], "sex": "m"}).round(3).to_string(index=False))
