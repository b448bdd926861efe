"""Where a fit runs: one device, or several processes."""

import os
from typing import Any, cast


def make_fabric(device: str, precision: str) -> Any:
    """One device, or all processes that torchrun started."""
    from lightning_fabric import Fabric  # takes a second to import

    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes == 1:
        return Fabric(accelerator=device, devices=1, precision=cast(Any, precision))
    here = int(os.environ.get("LOCAL_WORLD_SIZE", str(processes)))
    fabric = Fabric(
        accelerator=device,
        devices=here,
        num_nodes=processes // here,
        strategy="ddp",
        precision=cast(Any, precision),
    )
    fabric.launch()
    return fabric
