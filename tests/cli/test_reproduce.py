"""The command ``reproduce``; what it writes is in tests of the experiments."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from echelon.cli.main import app


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("firemen",), "the experiments that can be run are fireman, coursera"),
        (("digits", "--data", "table.csv"), "digits needs no data; got table.csv"),
        (("fireman", "--data", "missing.csv"), "there is no file missing.csv"),
        (("aes", "--images", "table.csv"), "there is no folder of images table.csv"),
        (("fireman", "--search", "missing.toml"), "there is no file missing.toml"),
        (("fireman", "--batches", "x"), "batches must be one of published, shuffled"),
        (("coursera", "--frozen"), "--frozen is for pretrained encoders"),
    ],
)
def test_wrong_requests_leave_no_folder(folder: Path, arguments, message: str) -> None:
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", "runs"])
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
    assert not Path("runs").exists()
