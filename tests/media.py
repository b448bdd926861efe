"""Small texts, images and encoders that several tests use."""

from pathlib import Path

import numpy as np
import pandas as pd

from echelon.extras import require

CLASSES = ("awful", "bad", "fine", "good")
WORDS = ("the", "course", "was", "very", "not", *CLASSES)


def mixed_table(
    n: int, folder: Path | None = None, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, categories, a text and an image of each row, and ranks 0..3.

    Each part tells something of the rank. With a folder the images are files, otherwise arrays.
    """
    generator = np.random.default_rng(seed)
    ranks = generator.integers(4, size=n)
    shades = 40 + 50 * ranks[:, None, None] + generator.integers(0, 40, size=(n, 12, 12))
    images = list(shades.astype(np.uint8))
    if folder is not None:
        from PIL import Image

        for i, image in enumerate(images):
            Image.fromarray(image).save(folder / f"{i}.png")
    frame = pd.DataFrame(
        {
            "size": ranks + generator.normal(size=n),
            "kind": np.where(ranks + generator.normal(size=n) > 1.5, "big", "small"),
            "review": [f"The course was {CLASSES[rank]}!" for rank in ranks],
            "photo": [f"{i}.png" for i in range(n)] if folder else images,
        }
    )
    frame.loc[::7, "size"] = np.nan
    return frame, ranks


def save_tiny_encoder(folder: Path) -> Path:
    """A BERT of two small layers with a tokenizer of a few words, as transformers saves them."""
    transformers = require("transformers", "these tests")

    folder.mkdir(exist_ok=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *WORDS]))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(special) + len(WORDS), hidden_size=16, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=24, max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    return folder
