"""A cluster that does not answer is said so, soon."""

import socket

import pytest

from echelon.cluster import _look_for_cluster


def test_a_cluster_that_is_not_there_is_said_soon() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        for asked in (address, f"ray://{address}"):
            with pytest.raises(
                ValueError, match=r"there is no Ray cluster at .* or local to start"
            ):
                _look_for_cluster(asked)


def test_a_server_that_is_no_cluster_is_not_waited_for(monkeypatch) -> None:
    monkeypatch.setattr("echelon.cluster._ANSWER_SECONDS", 1)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(ValueError, match="no answer in 1 seconds"):
            _look_for_cluster(f"127.0.0.1:{mute.getsockname()[1]}")
