"""Where a fit runs: one device, or several processes."""

import os
from typing import Any, cast

from echelon.processes import RENDEZVOUS, local_world_size, rank, world_size


def make_fabric(device: str, precision: str) -> Any:
    """One device, or all processes that torchrun or ``--devices`` started."""
    from lightning_fabric import Fabric  # takes a second to import
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

    processes = world_size()
    check_device(device)
    if processes == 1:
        return Fabric(accelerator=device, devices=1, precision=cast(Any, precision))
    here = local_world_size()
    fabric = Fabric(
        accelerator=device,
        devices=here,
        num_nodes=processes // here,
        strategy="ddp",
        precision=cast(Any, precision),
        plugins=[TorchElasticEnvironment()] if RENDEZVOUS in os.environ else None,
    )
    if RENDEZVOUS in os.environ:
        _meet(os.environ[RENDEZVOUS], fabric.device.type)
    fabric.launch()
    return fabric


def check_device(device: str) -> None:
    """Raise for a device that this machine does not have.

    Examples
    --------
    >>> check_device("abacus")
    Traceback (most recent call last):
    ...
    ValueError: device must be auto, cpu, cuda, mps or another accelerator of lightning-fabric that
    this machine has; got 'abacus': try auto
    """
    if device in ("auto", "cpu"):
        return
    from lightning_fabric import Fabric

    try:
        Fabric(accelerator=device, devices=1)
    except Exception:  # of every kind: a missing package, no such name, no such device
        raise ValueError(
            f"device must be auto, cpu, cuda, mps or another accelerator of lightning-fabric that "
            f"this machine has; got {device!r}: try auto"
        ) from None


def _meet(rendezvous: str, device: str) -> None:
    """Connect the processes of one machine through a file: torch's own server listens to all."""
    from torch import distributed

    if distributed.is_initialized():
        return
    processes = world_size()
    distributed.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        store=distributed.FileStore(rendezvous, processes),  # type: ignore[attr-defined]
        rank=rank(),
        world_size=processes,
    )
