"""Several processes: the global ratio, and the methods that refuse them."""

import os
import socket
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import echelon

WORLD = 2
METHODS = [name for name, row in echelon.METHODS.items() if not row.couples_rows]


def make_model(name: str) -> tuple[echelon.Method, nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    method = echelon.method(name, 6)
    return method, method.head(4), torch.randn(11, 4), torch.randint(6, (11,))


def worker(rank: int, port: int) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=WORLD,
        timeout=timedelta(seconds=60),
    )
    for name in METHODS:
        method, head, features, ranks = make_model(name)
        expected = torch.autograd.grad(method.loss(head(features), ranks), head.parameters())
        model = DistributedDataParallel(head)
        mine = slice(0, 3) if rank == 0 else slice(3, 11)  # unequal shares: a mean of means fails
        parts = method.loss_parts(model(features[mine]), ranks[mine])
        count = parts.count.clone()
        dist.all_reduce(count)
        # DDP averages gradients over the processes, so the sum needs the factor back
        (parts.total * WORLD / count).backward()
        for parameter, gradient in zip(head.parameters(), expected, strict=True):
            torch.testing.assert_close(parameter.grad, gradient, msg=f"{name}: gradients differ")
    for name in set(echelon.METHODS) - set(METHODS):
        with pytest.raises(ValueError, match=f"{name}.*pairs across devices would be missed"):
            echelon.METHODS[name].loss(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0]))
    del model
    dist.barrier()  # nobody leaves while the other still talks
    dist.destroy_process_group()
    # Threads of gloo may still run while the interpreter takes itself down, which then aborts.
    os._exit(0)


def test_sum_and_count_give_the_global_ratio() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=WORLD, join=True)
