"""Networks for images: weights from local files only, and rows that keep to themselves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from echelon.networks.image import SmallResNet, TimmBackbone
from tests.memory import MEMORY_CHECK

SCALE = {"mean": (0.5,) * 3, "std": (0.25,) * 3}
NARROW = {"channels": (16, 16, 16, 16)}


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
    state = {**known.network.state_dict(), "fc.weight": torch.zeros(1000, 16)}  # a classifier's
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


@pytest.mark.parametrize(
    "name",
    [
        "hf-hub:timm/resnet18",
        "hf_hub:a/b",
        "local-dir:/tmp",
        "../resnet18",
        "resnet18.a/b",
        "",
        ".",
    ],
)
def test_a_name_is_that_of_a_network(name: str) -> None:
    with pytest.raises(ValueError, match="has no network of that name"):
        TimmBackbone(name, **SCALE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint_path": "x.pth"}, "does not take the option 'checkpoint_path'.*are: attn"),
        ({"pretrained_cfg": {"file": "x.pth"}}, "does not take the option 'pretrained_cfg'"),
        ({"features_only": True}, "does not take the option 'features_only'"),
        ({"drop_rate": "high"}, "drop_rate must be a number"),
        ({"channels": (10**9,) * 4}, "channels must be a number of at most 65,536"),
        ({"channels": (16,) * 100}, "or a short list"),
        ({"global_pool": "x"}, "one of avg"),
    ],
)
def test_options_are_those_that_are_listed(options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TimmBackbone("resnet18", **SCALE, **options)


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


def learn_with_narrow_networks() -> None:
    """Gradients of networks with few channels, for odd and even batches, one and two threads."""
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for network in (
            SmallResNet(**SCALE, widths=(4, 8)),
            TimmBackbone("resnet18", **SCALE, channels=(4, 8, 4, 6)),
        ):
            for n in (4, 11):
                network(pixels(n, 40)).square().sum().backward()
            assert all(torch.isfinite(one.grad).all() for one in network.parameters())


def test_narrow_networks_stay_within_their_memory() -> None:
    """A narrow convolution of size one with a stride, channels last, would end the process.

    In a process of its own, with the processor that has the defect and an allocator that sees
    every write beyond a block.
    """
    code = "from tests.networks.test_image import *; learn_with_narrow_networks(); print('whole')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **MEMORY_CHECK},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout.strip() == "whole", done.stderr[-2000:]


def test_only_narrow_strides_keep_pixels_in_the_other_order() -> None:
    assert TimmBackbone("resnet18", **SCALE, **NARROW).channels_last
    assert not TimmBackbone("resnet18", **SCALE, channels=(8, 16, 16, 16)).channels_last
