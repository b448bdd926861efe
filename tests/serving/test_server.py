"""The process that listens: on the loopback address alone, and gone when it is told to go."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from echelon.serving.server import address_of, is_loopback, listening_socket, read_token
from tests.serving.client import Client, serving_process
from tests.serving.test_application import features, records
from tests.sockets import is_loopback as reached_by_us_alone
from tests.sockets import listening


def test_a_process_listens_here_alone_answers_what_it_took_and_ends_with_0(
    model_path: Path, table
) -> None:
    with listening() as addresses, serving_process(model_path) as (client, process):
        rows = records(features(table, 50)) * 8
        assert client.ask("/predict", rows).status == 200
        time.sleep(0.3)
        answers = []
        other = Client(client.port)
        asking = threading.Thread(target=lambda: answers.append(other.ask("/explain", rows[:20])))
        asking.start()
        time.sleep(0.03)
        process.send_signal(signal.SIGTERM)
        asking.join()
        other.close()
        assert process.wait(20) == 0
        assert [answer.status for answer in answers] == [200]
        lines = process.stderr.read().splitlines()
    assert addresses
    assert all(map(reached_by_us_alone, addresses))
    assert len(lines) == 2  # one for each request


def test_an_address_that_is_taken_is_one_sentence() -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address_of(taken) == f"http://127.0.0.1:{port}"
        assert is_loopback(taken)
        with pytest.raises(ValueError, match=r"cannot be listened on: .*; take another"):
            listening_socket("127.0.0.1", port)
    with pytest.raises(ValueError, match="must be an address"):
        listening_socket("no such host", 0)


def test_an_address_of_version_6_has_brackets() -> None:
    if not socket.has_ipv6:
        pytest.fail("this machine has no IPv6, which this test needs")
    with listening_socket("::1", 0) as listener:
        assert address_of(listener).startswith("http://[::1]:")
        assert is_loopback(listener)


def test_a_token_is_long_enough_and_plain(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("  abcdefghijklmnop123\n")
    assert read_token(path) == b"abcdefghijklmnop123"
    for wrong in ("", "short", "with spaces in it and long", "ü" * 20, "x" * 5000):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="a token must be 16 to 4,096 letters"):
            read_token(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="name a file with a token"):
        read_token(tmp_path / "pipe")


def test_without_the_extra_it_says_what_to_install(model_path: Path) -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['echelon', 'serve', "
        f"{str(model_path)!r}]\nfrom echelon.cli.main import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == (
        "echelon: servers need the extra `serve`: pip install 'echelon[serve]'\n"
    )
