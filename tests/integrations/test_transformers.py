"""The stock Trainer of transformers on a converted classifier: nothing of ours in between."""

from pathlib import Path

import numpy as np
import pytest
import torch

import echelon
from echelon.evaluation.metrics import all_scores
from echelon.extras import require

transformers = require("transformers", "these tests")
K = 4


class Rows(torch.utils.data.Dataset):
    """Sequences whose rank is how many of the tokens are large; as tokenizers give them."""

    def __init__(self, n: int, *, labelled: bool = True, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(5, 30, (n, 6), generator=generator)
        large = (self.tokens > 17).sum(-1)
        self.ranks = torch.bucketize(large, torch.tensor([1, 2, 3]))
        self.labelled = labelled

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, i: int) -> dict:
        row = {
            "input_ids": self.tokens[i],
            "attention_mask": torch.ones(6, dtype=torch.long),
            "a_column_that_no_network_takes": "such as the text itself",
        }
        return {**row, "label": int(self.ranks[i])} if self.labelled else row


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, num_labels=9, hidden_dropout_prob=0.0,
    )  # fmt: skip
    model = echelon.convert(transformers.BertForSequenceClassification(config), K, "corn")

    def compute_metrics(evaluation) -> dict[str, float]:
        curve = model.curve(evaluation.predictions)  # of numpy
        return all_scores(evaluation.label_ids, curve.median().numpy(), curve.probabilities.numpy())

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path_factory.mktemp("trainer")), num_train_epochs=14,
        per_device_train_batch_size=16, per_device_eval_batch_size=8, learning_rate=0.01,
        report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="epoch", save_total_limit=1,
        logging_strategy="no", gradient_accumulation_steps=2, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=Rows(300),
        eval_dataset=Rows(41, seed=1),
        compute_metrics=compute_metrics,
    )
    trainer.untrained = trainer.evaluate()
    trainer.train()
    return trainer


def test_the_columns_that_the_network_takes_are_kept(trainer) -> None:
    batch = next(iter(trainer.get_train_dataloader()))
    assert sorted(batch) == ["attention_mask", "input_ids", "labels"]
    assert trainer.label_names == ["labels"]


def test_training_lowers_loss_and_error(trainer) -> None:
    after = trainer.evaluate()
    assert after["eval_loss"] < 0.8 * trainer.untrained["eval_loss"]
    assert after["eval_mae"] < 0.6 * trainer.untrained["eval_mae"]
    assert after["eval_quadratic_weighted_kappa"] > 0.5


def test_the_loss_of_an_evaluation_is_the_method_s(trainer) -> None:
    found = trainer.predict(Rows(8, seed=2))  # one batch
    ranks = torch.from_numpy(found.label_ids)
    expected = trainer.model.method.loss(torch.from_numpy(found.predictions), ranks)
    assert found.metrics["test_loss"] == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("n", [8, 9, 17])
def test_rows_without_labels_are_predicted(trainer, n: int) -> None:
    """Also a last batch of one row, whose logits (1, J) must not become (J,)."""
    rows = Rows(n, labelled=False, seed=3)
    found = trainer.predict(rows)
    assert found.predictions.shape == (n, K - 1)
    assert found.label_ids is None
    trainer.model.eval()
    with torch.no_grad():
        expected = trainer.model(input_ids=rows.tokens, attention_mask=torch.ones(n, 6).long())
    np.testing.assert_allclose(found.predictions, expected.logits.numpy(), rtol=1e-4, atol=1e-5)


def test_a_checkpoint_of_the_trainer_is_the_model_s(trainer) -> None:
    from safetensors.torch import load_file

    (folder,) = list(Path(trainer.args.output_dir).glob("checkpoint-*"))
    stored = load_file(folder / "model.safetensors")
    assert stored.keys() == trainer.model.state_dict().keys()
    trainer.model.load_state_dict(stored)
