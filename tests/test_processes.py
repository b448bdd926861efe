"""Processes that share work: who they are, how they meet, and with whom they end."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from echelon import processes

# The module alone, as the package takes a while to import.
ALONE = (
    f"import sys; sys.path.insert(0, {str(Path(processes.__file__).parent)!r}); import processes; "
)


@pytest.mark.skipif(os.name == "nt", reason="where the number of a parent stays after its end")
@pytest.mark.parametrize(("is_there", "expected"), [(True, (0, "goes on\n")), (False, (1, ""))])
def test_a_process_whose_parent_is_gone_already_ends_at_once(is_there, expected) -> None:
    """It may have been started just before the end of the one that started it."""
    parent = os.getpid() if is_there else 2**22 + 1
    code = f"{ALONE}processes.leave_with({parent}); print('goes on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == expected, done.stderr


@pytest.mark.skipif(os.name == "nt", reason="where the number of a parent stays after its end")
def test_a_process_ends_with_its_parent() -> None:
    child = f"{ALONE}import os, time; processes.leave_with(os.getppid()); print('up'); "
    child += "sys.stdout.flush(); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    command = [sys.executable, "-c", parent]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout.readline() == "up\n"
        started.kill()
        assert started.stdout.read() == ""  # closed by the child, which is gone


@pytest.mark.skipif(sys.platform != "linux", reason="the name of the loopback interface")
def test_processes_of_one_machine_meet_on_the_loopback_interface() -> None:
    told = processes.together(1, 2, "file")
    assert told["GLOO_SOCKET_IFNAME"] == told["NCCL_SOCKET_IFNAME"] == "lo"
    assert (told["RANK"], told["WORLD_SIZE"], told[processes.RENDEZVOUS]) == ("1", "2", "file")
    assert "MASTER_ADDR" not in told


def test_a_launched_process_knows_it_and_how_many_are_on_its_machine(monkeypatch) -> None:
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert not processes.is_launched()
    assert processes.local_world_size() == 1
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert processes.is_launched()
    assert processes.local_world_size() == processes.world_size() == 4
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert (processes.world_size(), processes.local_world_size()) == (4, 2)


def test_no_other_module_asks_how_many_processes_there_are() -> None:
    """By syntax tree: the names of the variables stand in one module."""
    source = Path(processes.__file__).parent
    names = {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK", "LOCAL_RANK"}
    readers = {
        path.name
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert readers == {"processes.py"}


def test_processes_of_several_machines_are_not_bound_to_one() -> None:
    told = processes.together(3, 4, "place", local=(1, 2), is_one_machine=False)
    assert [told[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")] == [
        "3", "4", "1", "2",
    ]  # fmt: skip
    assert not any("SOCKET_IFNAME" in name for name in told)
