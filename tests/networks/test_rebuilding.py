"""A network from tensors that nobody trusts: theirs exactly, or an error before it is made."""

import threading

import pytest
import torch
from torch import nn

from echelon.networks.rebuilding import rebuild


def make() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


class Bounded(nn.Module):
    """May hold an infinity in one of its buffers."""

    unbounded = ("reach",)

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("reach", torch.zeros(2))
        self.register_buffer("centre", torch.zeros(2))


def test_the_network_has_the_tensors_and_takes_their_numbers_in_another_precision() -> None:
    state = make().state_dict()
    for tensors in (
        state,
        {k: v.double() if v.is_floating_point() else v for k, v in state.items()},
    ):
        found = rebuild(make, tensors).state_dict()
        assert found.keys() == state.keys()
        for name, tensor in state.items():
            assert found[name].dtype == tensor.dtype
            assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"2.bias": None}, "the tensor '2.bias' is missing"),
        ({"more": torch.zeros(1)}, "no place for the tensor 'more'"),
        ({"0.weight": torch.zeros(4, 9)}, r"'0.weight' must be \(4, 3\); it is \(4, 9\)"),
        ({"0.bias": torch.zeros(4).long()}, "must be torch.float32; it is torch.int64"),
        ({"1.num_batches_tracked": torch.tensor(0.5)}, "must be torch.int64; it is"),
        ({"0.bias": torch.full((4,), torch.inf)}, "'0.bias' holds what is no number"),
        ({"1.running_var": torch.full((4,), torch.nan)}, "holds what is no number"),
        ({"0.bias": torch.full((4,), 1e300, dtype=torch.float64)}, "holds what is no number"),
    ],
)  # fmt: skip
def test_tensors_that_are_not_those_of_the_network_are_refused(change, message: str) -> None:
    tensors = {**make().state_dict(), **change}
    with pytest.raises(ValueError, match=message):
        rebuild(make, {name: tensor for name, tensor in tensors.items() if tensor is not None})


def test_only_what_a_module_lists_may_be_infinite_and_nothing_is_nan() -> None:
    far, nowhere = torch.full((2,), torch.inf), torch.full((2,), torch.nan)
    zeros = torch.zeros(2)
    assert torch.equal(rebuild(Bounded, {"reach": far, "centre": zeros}).reach, far)
    for tensors in ({"reach": zeros, "centre": far}, {"reach": nowhere, "centre": zeros}):
        with pytest.raises(ValueError, match="holds what is no number"):
            rebuild(Bounded, tensors)


@pytest.mark.parametrize(
    "large",
    [
        lambda: nn.Linear(10**6, 10**6),
        lambda: nn.ModuleList(nn.Linear(1, 1) for _ in range(10**9)),
    ],
    ids=["wide", "deep"],
)
@pytest.mark.timeout(30)
def test_a_description_that_asks_for_too_much_is_stopped_while_it_builds(large) -> None:
    with pytest.raises(ValueError, match="far larger than its weights"):
        rebuild(large, {"weight": torch.zeros(1)})
    nn.ModuleList(nn.Linear(1, 1) for _ in range(1000))  # and nobody is stopped afterwards


def test_other_threads_build_what_they_like() -> None:
    def beside() -> nn.Module:
        thread = threading.Thread(target=lambda: built.append(nn.Linear(5000, 5000)))
        thread.start()
        thread.join()
        return make()

    built: list[nn.Module] = []
    rebuild(beside, make().state_dict())
    assert len(built) == 2  # one for each turn
