"""Curves a part at a time: in the order of the rows, and as if they had come at once."""

import numpy as np
import pytest
import torch
from torch import nn

import echelon
from echelon.data.inputs import Inputs
from echelon.data.kinds.image import ImageSettings
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.kinds.text import TokenLists
from echelon.networks import prediction
from echelon.networks.joined import JoinedBackbone
from echelon.networks.network import OrdinalNetwork
from echelon.networks.prediction import in_order, predict_curve, worker_count
from echelon.networks.table import make_backbone


def encoder() -> TableEncoder:
    return TableEncoder(3, (), scaling="none", kept=[0, 1, 2], indicators=[])


@pytest.fixture
def of_tables() -> OrdinalNetwork:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))
    return OrdinalNetwork(encoder(), made, echelon.method("corn", 4), 8).train()


@pytest.fixture
def of_texts() -> OrdinalNetwork:
    torch.manual_seed(0)
    part = make_backbone("lstm", {"num_tokens": 30}, {"embedding": 4, "hidden": 4})
    return OrdinalNetwork(
        encoder(), JoinedBackbone({"text": part}), echelon.method("corn", 4), 4
    ).eval()


def texts(n: int = 50) -> Inputs:
    rng = np.random.default_rng(0)
    lists = [rng.integers(3, 30, size=length).tolist() for length in rng.integers(1, 40, size=n)]
    return Inputs({"text": TokenLists.of(lists)})


def test_dropout_is_off_while_predicting_and_on_again_afterwards(of_tables, monkeypatch) -> None:
    features = torch.randn(100, 3)
    expected = predict_curve(of_tables, features)
    assert of_tables.training
    assert not expected.log_probabilities.requires_grad
    monkeypatch.setattr(prediction, "_PREDICT_ROWS", 7)
    again = predict_curve(of_tables, features)
    torch.testing.assert_close(again.log_probabilities, expected.log_probabilities)


@pytest.mark.parametrize("workers", [0, 2])
def test_every_row_comes_once_those_of_like_length_together(monkeypatch, workers: int) -> None:
    monkeypatch.setattr(prediction, "_MEDIA_ROWS", 8)
    inputs = texts()
    parts = list(in_order(inputs, workers))
    assert sorted(np.concatenate([rows for rows, _ in parts])) == list(range(50))
    for rows, batch in parts:
        assert torch.equal(batch["text"], inputs.take(rows)["text"])
        assert batch["text"].shape[1] == inputs.lengths[rows].max()
    longest = [inputs.lengths[rows].max() for rows, _ in parts]
    assert longest == sorted(longest)


def test_curves_of_texts_are_in_the_order_of_the_rows(of_texts, monkeypatch) -> None:
    monkeypatch.setattr(prediction, "_MEDIA_ROWS", 8)
    inputs = texts()
    found = predict_curve(of_texts, inputs).log_probabilities
    for row in (0, 17, 49):
        with torch.no_grad():
            alone = of_texts.curve(of_texts(inputs.take(np.array([row]))))
        torch.testing.assert_close(found[row], alone.log_probabilities[0])


def test_images_pass_a_network_in_pieces_that_fit_a_cache(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    cells = np.empty(21, dtype=object)
    cells[:] = list(rng.integers(256, size=(21, 8, 8, 3), dtype=np.uint8))
    settings = ImageSettings(8, 8)
    inputs = Inputs({"image": settings.encode(cells)})
    part = make_backbone("resnet", settings.sizes, {"widths": (16,), "blocks": 1})
    network = OrdinalNetwork(
        encoder(), JoinedBackbone({"image": part}), echelon.method("corn", 4), 16
    ).eval()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    seen: list[int] = []
    part.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    whole = predict_curve(network, inputs).log_probabilities
    assert seen == [16, 5]
    seen.clear()
    monkeypatch.setattr(prediction, "_PIXELS_A_THREAD", 6 * 8 * 8)
    pieces = predict_curve(network, inputs).log_probabilities
    assert seen == [6, 6, 6, 3]
    torch.testing.assert_close(pieces, whole)
    with torch.no_grad():
        alone = network.curve(network(inputs.take(np.array([20])))).log_probabilities[0]
    torch.testing.assert_close(pieces[20], alone)


def test_threads_read_only_what_takes_time() -> None:
    assert worker_count(torch.zeros(3, 2), 4) == 0
    assert worker_count(texts(), 4) == 0


@pytest.mark.parametrize("workers", [-1, 1.5, True, "4"])
def test_threads_are_counted(workers) -> None:
    cells = np.empty(1, dtype=object)
    cells[0] = np.zeros((4, 4), dtype=np.uint8)
    images = Inputs({"image": ImageSettings(4, 4).encode(cells)})
    assert worker_count(images, 2) == 2
    with pytest.raises(ValueError, match="workers must be a whole number of threads, at least 0"):
        worker_count(images, workers)
