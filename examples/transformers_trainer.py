"""Hugging Face: the stock Trainer on a converted classifier; nothing of it is overridden."""

import numpy as np
import torch

import echelon
from echelon.evaluation.metrics import all_scores
from echelon.extras import require

transformers = require("transformers", "this example")  # also beside an odd torchvision

CLASSES = 4


class Rows(torch.utils.data.Dataset):
    """Tokens whose rank is how many of them are large; a tokenizer gives the same keys."""

    def __init__(self, n: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.tokens = rng.integers(5, 30, (n, 6))
        self.ranks = np.digitize((self.tokens > 17).sum(axis=1), [2, 3, 4])

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, i: int) -> dict[str, object]:
        mask = torch.ones(6, dtype=torch.long)
        tokens = torch.from_numpy(self.tokens[i])
        return {"input_ids": tokens, "attention_mask": mask, "label": int(self.ranks[i])}


torch.manual_seed(0)
# With the network at hand: BertForSequenceClassification.from_pretrained("bert-base-uncased")
config = transformers.BertConfig(
    vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=16, hidden_dropout_prob=0.0,
)  # fmt: skip
model = echelon.convert(transformers.BertForSequenceClassification(config), CLASSES, method="corn")


def compute_metrics(evaluation):  # type: ignore[no-untyped-def]
    """Every metric of echelon, from logits as numpy has them."""
    curve = model.curve(evaluation.predictions)
    return all_scores(evaluation.label_ids, curve.median().numpy(), curve.probabilities.numpy())


arguments = transformers.TrainingArguments(
    output_dir="trainer", num_train_epochs=8, per_device_train_batch_size=32, learning_rate=0.01,
    report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no", logging_strategy="no",
    dataloader_pin_memory=False,
)  # fmt: skip
trainer = transformers.Trainer(
    model, arguments, train_dataset=Rows(400, 0), eval_dataset=Rows(100, 1),
    compute_metrics=compute_metrics,
)  # fmt: skip
trainer.train()
scores = trainer.evaluate()
print(f"mean absolute error {scores['eval_mae']:.3f}")
print(f"quadratic weighted kappa {scores['eval_quadratic_weighted_kappa']:.3f}")
