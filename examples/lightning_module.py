"""Lightning: a converted network in a LightningModule, and a kappa that adds up over batches."""

import torch
from torch.utils.data import DataLoader, TensorDataset

import echelon
from echelon.evaluation.torchmetrics import CurveMetric
from echelon.extras import require

lightning = require("lightning", "this example")  # also beside a torchvision that does not fit


class Ordinal(lightning.LightningModule):
    """A network with CORN's head, trained by CORN's loss."""

    def __init__(self) -> None:
        super().__init__()
        layers = torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 7)
        self.model = echelon.convert(torch.nn.Sequential(*layers), num_classes=4, method="corn")
        self.kappa = CurveMetric("quadratic_weighted_kappa", num_classes=4)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        """The loss of a batch."""
        features, ranks = batch
        return self.model(features, labels=ranks).loss

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        """The kappa of all batches together, not their mean."""
        features, ranks = batch
        self.kappa.update(self.model.curve(self.model(features)), ranks)
        self.log("kappa", self.kappa)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), 0.01)


torch.manual_seed(0)
data = echelon.data.make_friedman(600, num_classes=4)
rows = TensorDataset(torch.from_numpy(data.features), torch.from_numpy(data.ranks))
train, valid = torch.utils.data.random_split(rows, [500, 100])
loaders = DataLoader(train, 50, shuffle=True), DataLoader(valid, 50)
trainer = lightning.Trainer(
    max_epochs=10, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(Ordinal(), *loaders)
print(f"kappa on validation rows: {trainer.callback_metrics['kappa']:.3f}")
