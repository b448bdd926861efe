"""A row has the same logits whoever stands beside it, in float32 or in a copy in float64."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import echelon
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.schema import RawTable
from echelon.networks import steadiness
from echelon.networks.network import OrdinalNetwork
from echelon.networks.prediction import table_curves
from echelon.networks.steadiness import in_float64, steady_step


class Wavering(nn.Module):
    """What a machine would be on which the rounding depends on the number of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 8)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        shaken = self.layer(features)
        return shaken if features.dtype == torch.float64 else shaken + 1e-5 * len(features)


def network(backbone: nn.Module | None = None, width: int = 64) -> OrdinalNetwork:
    torch.manual_seed(0)
    encoder = TableEncoder(3, (2,), scaling="none", kept=[0, 1], indicators=[2])
    backbone = backbone or nn.Sequential(nn.Linear(5, width), nn.SiLU(), nn.Linear(width, 8))
    return OrdinalNetwork(encoder, backbone, echelon.method("corn", 4), 8).eval()


def table(rows: int) -> RawTable:
    rng = np.random.default_rng(0)
    return RawTable(rng.normal(size=(rows, 3)), rng.integers(0, 3, size=(rows, 1)))


def log_probabilities(of: OrdinalNetwork, rows: RawTable) -> torch.Tensor:
    return torch.cat([curve.log_probabilities for curve in table_curves(of, rows)])


@pytest.mark.parametrize("size", [1, 3, 17, 300])
def test_rows_are_the_same_however_many_come_at_once(size: int) -> None:
    read, rows = network(), table(2500)
    whole = log_probabilities(read, rows)
    assert whole.dtype == torch.float64
    for start in range(0, 100 + size, size):
        part = slice(start, start + size)
        torch.testing.assert_close(
            log_probabilities(read, rows.rows(part)), whole[part], rtol=0, atol=1e-7
        )


def test_a_network_that_wavers_is_read_in_float64() -> None:
    encoder = TableEncoder(3, (), scaling="none", kept=[0, 1, 2], indicators=[])
    wavering = OrdinalNetwork(encoder, Wavering(), echelon.method("corn", 4), 8).eval()
    assert steady_step(wavering) is None
    rows = RawTable(table(40).numbers, np.zeros((40, 0), dtype=np.int64))
    whole = log_probabilities(wavering, rows)
    alone = log_probabilities(wavering, rows.rows(slice(7, 8)))
    torch.testing.assert_close(alone, whole[7:8], rtol=0, atol=1e-12)


def test_it_is_tried_once_for_each_network_and_number_of_threads(monkeypatch) -> None:
    tried = []
    monkeypatch.setattr(steadiness, "_find_step", lambda *_: tried.append(1))
    read = network()
    for _ in range(3):
        steady_step(read)
    assert len(tried) == 1
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads + 1)
    steady_step(read)
    assert len(tried) == 2


def test_what_is_no_float32_has_no_step() -> None:
    assert steady_step(network().double()) is None


def test_the_trial_draws_no_random_numbers_of_others() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    read = network()
    torch.manual_seed(3)
    steady_step(read)
    assert torch.rand(1) == expected


def test_the_copy_is_made_once_and_again_when_a_weight_has_changed() -> None:
    read = network()
    first = in_float64(read)
    assert in_float64(read) is first
    with torch.no_grad():
        read.head.weight.add_(1.0)
    second = in_float64(read)
    assert second is not first
    torch.testing.assert_close(second.head.weight, read.head.weight.double())
    read.head.weight = nn.Parameter(torch.zeros_like(read.head.weight))
    assert not in_float64(read).head.weight.any()
    other = copy.deepcopy(read)
    assert in_float64(other) is not in_float64(read)


def test_a_copy_does_not_keep_its_network_alive() -> None:
    import gc

    kept = len(steadiness._copies)
    read = network()
    in_float64(read)
    assert len(steadiness._copies) == kept + 1
    del read
    gc.collect()
    assert len(steadiness._copies) == kept


def test_rows_too_large_for_float32_are_read_in_float64_whoever_is_beside_them() -> None:
    read, rows = network(), table(50)
    with torch.no_grad():
        read.backbone[0].weight.mul_(1e3)
    calm = log_probabilities(read, rows)
    rows.numbers[3, 0] = 1e37
    whole = log_probabilities(read, rows)
    assert torch.isfinite(in_float64(read)({"table": cells(rows, 3)})).all()
    assert not torch.isnan(whole).any()
    torch.testing.assert_close(whole[:3], calm[:3], rtol=0, atol=0)
    torch.testing.assert_close(log_probabilities(read, rows.rows(slice(3, 4))), whole[3:4])


def cells(rows: RawTable, row: int) -> tuple[torch.Tensor, torch.Tensor]:
    part = slice(row, row + 1)
    return torch.from_numpy(rows.numbers[part]), torch.from_numpy(rows.codes[part])
