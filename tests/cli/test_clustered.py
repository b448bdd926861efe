"""``fit --cluster`` before it starts anything; tests/slow/test_clustered.py has the workers."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from echelon.cli import clustered
from echelon.cli.clustered import share_cluster
from echelon.cli.main import app


def test_nothing_happens_without_a_cluster_or_in_one_of_its_workers(monkeypatch) -> None:
    share_cluster(None, 2, Path("model"))
    monkeypatch.setenv("WORLD_SIZE", "2")
    share_cluster("local", 2, Path("model"))


@pytest.mark.parametrize("count", [0, -1, 5000])
def test_a_wrong_number_of_workers_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=r"--devices must be from 1 to 4,096 with --cluster"):
        share_cluster("local", count, Path("model"))


def test_what_is_wrong_with_the_output_is_said_before_a_cluster_is_started(folder) -> None:
    arguments = ["fit", "table.parquet", "--target", "stars", "--cluster", "local"]
    result = CliRunner().invoke(app, [*arguments, "--out", "model.csv"])
    assert "a model is a file of echelon's own" in str(result.exception)


def test_the_shared_folder_goes_whatever_happens(tmp_path) -> None:
    def fail() -> None:
        with clustered._shared_folder(tmp_path / "model", is_local=False) as shared:
            assert shared.parent == tmp_path
            raise RuntimeError("a worker failed")

    with pytest.raises(RuntimeError, match="worker"):
        fail()
    assert not list(tmp_path.iterdir())
