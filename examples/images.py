"""Images: how full is the disc? A small ResNet; ``timm:NAME`` would take a pretrained one."""

import numpy as np

import echelon
from echelon.evaluation.metrics import mae

data = echelon.data.make_discs(300, num_classes=4, size=16)  # or paths of files in a column
images, ranks = data.images, data.ranks
model = echelon.OrdinalClassifier(
    "corn",
    "resnet",
    backbone_options={"widths": (16, 16), "blocks": 1},
    settings={"max_epochs": 8, "batch_size": 32},
    random_state=0,
)
model.fit(images[:250], ranks[:250])

truth, predicted = ranks[250:], model.predict(images[250:])
print(f"mean absolute error {mae(truth, predicted):.2f} classes")
print(f"  always the middle: {np.abs(truth - np.median(ranks[:250])).mean():.2f}")
model.save("discs.echelon")  # with everything from pixels to labels
