"""Locks between processes: they wait for each other, and end with who holds them."""

import select
import subprocess
import sys
from pathlib import Path

import pytest

from echelon.storage.locks import locked

HOLD = """
import sys, time
from pathlib import Path
from echelon.storage.locks import locked
with locked(Path(sys.argv[1])) as is_held:
    print(is_held, flush=True)
    time.sleep(60)
"""


def test_a_lock_is_waited_for_and_ends_with_its_process(tmp_path: Path) -> None:
    place = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline().strip() == "True"
    waiter = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdout=subprocess.PIPE, text=True
    )
    assert not select.select([waiter.stdout], [], [], 2.0)[0]  # it waits
    holder.kill()
    holder.communicate()
    assert waiter.stdout.readline().strip() == "True"
    waiter.kill()
    waiter.communicate()


def test_where_no_lock_can_be_had_nobody_waits_and_errors_of_the_block_pass(tmp_path) -> None:
    with locked(tmp_path / "none" / "lock") as is_held:
        assert not is_held
    with pytest.raises(OSError, match="of the block"), locked(tmp_path / "lock"):
        raise OSError("of the block")
