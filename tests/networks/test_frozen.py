"""Frozen encoders of images and texts, and modules of the user's."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import echelon
from echelon import OrdinalClassifier
from echelon.networks.frozen import OwnBackbone, is_frozen
from echelon.networks.image import TimmBackbone
from tests.media import mixed_table

SCALE = {"mean": (0.5,) * 3, "std": (0.25,) * 3}
SIZE = {"image": {"size": 32}}


class Means(nn.Module):
    """From pixels to the means of some filters."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv2d(3, 16, 3)
        self.norm = nn.BatchNorm2d(16)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.norm(self.filters(pixels)).mean((2, 3))


class Words(nn.Module):
    """From ids of words to the mean of their vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 24)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        inside = (tokens >= 0).unsqueeze(-1)
        vectors = self.table(tokens.clamp(min=0)) * inside
        return vectors.sum(1) / inside.sum(1)


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, np.ndarray]:
    return mixed_table(90)


def weights(module: nn.Module) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in module.state_dict().values()]


def test_a_frozen_network_of_timm_keeps_weights_and_statistics(data, tmp_path) -> None:
    frame, ranks = data
    model = OrdinalClassifier(
        "corn", "timm:resnet10t", image="photo", backbone_options={"frozen": True}, inputs=SIZE,
        settings={"max_epochs": 3}, random_state=0, device="cpu",
    )  # fmt: skip
    fresh = OrdinalClassifier(**model.get_params()).set_params(settings={"max_epochs": 1})
    model.fit(frame[["photo"]], ranks)
    fresh.fit(frame[["photo"]], ranks)
    first, second = (m.network_.backbone.parts["image"].network for m in (model, fresh))
    for a, b in zip(weights(first), weights(second), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)  # trained longer, and the same
    model.save(tmp_path / "m.echelon")
    again = echelon.load(tmp_path / "m.echelon").predict_proba(frame[["photo"]])
    np.testing.assert_allclose(again, model.predict_proba(frame[["photo"]]), atol=1e-6)


@pytest.mark.parametrize(("column", "module"), [("photo", Means()), ("review", Words())])
@pytest.mark.parametrize("frozen", [True, False])
def test_texts_and_images_take_a_module_of_the_users(data, column, module, frozen) -> None:
    frame, ranks = data
    kind = {"photo": "image", "review": "text"}[column]
    before = weights(module)
    model = OrdinalClassifier(
        "corn", module, **{kind: column}, backbone_options={"frozen": frozen} if frozen else None,
        settings={"max_epochs": 30, "learning_rate": 0.02}, random_state=0, device="cpu",
        validation_fraction=0,  # equal texts stay together: all of a rank would be held out
    ).fit(frame[[column]], ranks)  # fmt: skip
    assert np.abs(model.predict(frame[[column]]) - ranks).mean() < 0.6  # a constant has 1.0
    fitted = weights(model.network_.backbone.parts[kind].module)
    assert all(map(torch.equal, before, fitted)) == frozen
    assert all(map(torch.equal, before, weights(module)))  # what was given is left alone
    with pytest.raises(ValueError, match="backbone of your own cannot be saved"):
        model.save("nowhere")


def test_what_a_module_does_not_take_is_refused(data) -> None:
    frame, ranks = data
    asked = {"settings": {"max_epochs": 1}, "device": "cpu"}
    with pytest.raises(ValueError, match="takes the options: frozen; got 'hidden'"):
        OrdinalClassifier(
            backbone=Means(), image="photo", backbone_options={"hidden": 3}, **asked
        ).fit(frame[["photo"]], ranks)
    with pytest.raises(ValueError, match="takes the options: none here, as it is a table"):
        OrdinalClassifier(backbone=nn.Linear(1, 4), backbone_options={"frozen": True}, **asked).fit(
            ranks[:, None] * 1.0, ranks
        )
    with pytest.raises(ValueError, match="one kind of input, and these rows have table and image"):
        OrdinalClassifier(backbone=Means(), image="photo", **asked).fit(
            frame[["size", "photo"]], ranks
        )
    with pytest.raises(ValueError, match=r"must take features of the shape \(n, 3, 12, 12\)"):
        OrdinalClassifier(backbone=nn.Linear(3, 4), image="photo", **asked).fit(
            frame[["photo"]], ranks
        )


def test_what_is_encoded_already_passes_a_frozen_encoder_alone() -> None:
    frozen = OwnBackbone(Means(), torch.zeros(2, 3, 8, 8), frozen=True).eval()
    pixels = torch.rand(5, 3, 8, 8)
    torch.testing.assert_close(frozen(frozen.encode(pixels)), frozen(pixels))
    assert is_frozen(frozen)
    assert not is_frozen(OwnBackbone(Means(), torch.zeros(2, 3, 8, 8)))
    assert not is_frozen(TimmBackbone("resnet10t", **SCALE))
    assert not frozen.train().module.norm.training
