"""A LightningModule around a converted network, with a metric of torchmetrics in its log."""

import warnings

import pytest
import torch
from torch import Tensor, nn

import echelon
from echelon.data import make_friedman
from echelon.evaluation.metrics import mae
from echelon.evaluation.torchmetrics import CurveMetric
from echelon.extras import require

lightning = require("lightning", "these tests")
K = 4


class Ordinal(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        network = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
        self.model = echelon.convert(network, K, "corn")
        self.mae = CurveMetric("mae", K)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        features, ranks = batch
        return self.model(features, labels=ranks).loss

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        features, ranks = batch
        self.mae.update(self.model.curve(self.model(features)), ranks)
        self.log("mae", self.mae)

    def predict_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        return self.model.curve(self.model(batch[0])).median()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 0.01)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    torch.manual_seed(0)
    data = make_friedman(260, num_classes=K, seed=0)
    features = torch.as_tensor(data.features, dtype=torch.float32)
    rows = torch.utils.data.TensorDataset(features, torch.as_tensor(data.ranks))
    train, valid = (torch.utils.data.Subset(rows, range(*ends)) for ends in ((0, 200), (200, 260)))
    loaders = [torch.utils.data.DataLoader(one, batch_size=25) for one in (train, valid)]
    trainer = lightning.Trainer(
        max_epochs=15, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False,
        default_root_dir=tmp_path_factory.mktemp("lightning"),
    )  # fmt: skip
    module = Ordinal()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it advises more workers for every loader
        untrained = trainer.validate(module, loaders[1], verbose=False)[0]["mae"]
        trainer.fit(module, *loaders)
        trained = trainer.validate(module, loaders[1], verbose=False)[0]["mae"]
        predicted = torch.cat(trainer.predict(module, loaders[1]))
    return untrained, trained, predicted, data.ranks[200:]


def test_it_learns(fitted) -> None:
    untrained, trained, _, _ = fitted
    assert trained < 0.7 * untrained


def test_the_logged_metric_is_that_of_all_rows_and_not_a_mean_over_batches(fitted) -> None:
    _, trained, predicted, ranks = fitted
    assert trained == pytest.approx(mae(ranks, predicted.numpy()), rel=1e-6)
