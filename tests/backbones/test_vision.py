"""Networks for pictures: weights from local files only, and rows that keep to themselves."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from echelon.backbones.vision import SmallResNet, TimmBackbone

SCALE = {"mean": (0.5,) * 3, "std": (0.25,) * 3}
NARROW = {"channels": (4, 4, 4, 4)}


def pixels(n: int = 4, size: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(256, (n, 3, size, size), dtype=torch.uint8, generator=generator)


def test_a_row_does_not_depend_on_its_batch() -> None:
    network = SmallResNet(**SCALE, widths=(4, 8)).double().eval()
    alone = torch.cat([network(row.unsqueeze(0)) for row in pixels()])
    torch.testing.assert_close(network(pixels()), alone)


@pytest.mark.parametrize("name", ["m.safetensors", "m.pt"])
def test_weights_from_a_local_file(tmp_path: Path, name: str) -> None:
    torch.manual_seed(1)
    known = TimmBackbone("resnet18", **SCALE, **NARROW).eval()
    state = {**known.network.state_dict(), "fc.weight": torch.zeros(1000, 4)}  # a classifier's
    path = tmp_path / name
    save_file(state, path) if name.endswith("safetensors") else torch.save(state, path)
    found = TimmBackbone("resnet18", **SCALE, **NARROW, weights=path).eval()
    assert torch.equal(found(pixels()), known(pixels()))
    # a saved model brings its own, and does not look for the file
    TimmBackbone("resnet18", **SCALE, **NARROW, weights=tmp_path / "gone", fetch=False)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file of weights"):
        TimmBackbone("resnet18", **SCALE, weights=tmp_path / "gone")
    save_file({"conv1.weight": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match=r"lacks weights of this network: conv1.weight"):
        TimmBackbone("resnet18", **SCALE, **NARROW, weights=tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match=r"timm cannot make 'resnet3456'.*near it are"):
        TimmBackbone("resnet3456", **SCALE)


def test_a_hostile_file_of_weights_runs_nothing(tmp_path: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("code ran",))

    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match=r"evil.pt cannot be read"):
        TimmBackbone("resnet18", **SCALE, **NARROW, weights=tmp_path / "evil.pt")


def test_the_way_around_is_a_convolution_with_a_stride() -> None:
    torch.manual_seed(0)
    network = SmallResNet(**SCALE, widths=(4, 8), blocks=1).eval()
    block = network.layers[1]
    x = torch.randn(3, 4, 9, 8)
    strided = torch.nn.functional.conv2d(x, block.around[0].weight, stride=2)
    torch.testing.assert_close(block.around[0](x[:, :, ::2, ::2]), strided)


def test_narrow_networks_learn_from_odd_batches_with_two_threads() -> None:
    """A convolution of size one with a stride would end the process here."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        network = SmallResNet(**SCALE, widths=(4, 8))
        for _ in range(20):
            network(pixels(11, 12)).square().sum().backward()
        assert all(torch.isfinite(one.grad).all() for one in network.parameters())
    finally:
        torch.set_num_threads(before)
