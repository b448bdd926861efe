"""The command ``serve``: what is wrong with its options is said before anything listens."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from echelon.cli.main import app
from echelon.cli.serve import say
from tests.sockets import listening


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--port", "70000"), "--port must be from 0 to 65,535; got 70000"),
        (("--threads", "0"), "--threads must be from 1"),
        (("--max-body", "0"), "--max-body must lie above 0"),
        (("--max-rows", "0"), "the limit of rows must be at least 1"),
        (("--max-seconds", "-1"), "the limit of seconds must lie above 0"),
        (("--coverage", "2"), "coverage must lie"),
        (("--token-file", "none.txt"), "there is no file none.txt"),
        ((), "damaged or not a file of echelon's"),
    ],
)
def test_wrong_options_are_named_and_nothing_listens(
    options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m").write_text("no model")
    with listening() as addresses:
        result = CliRunner().invoke(app, ["serve", "m", *options])
    assert message in str(result.exception)
    assert not addresses


def test_a_line_has_its_time(capsys) -> None:
    say("POST /predict 200")
    heard = capsys.readouterr()
    assert heard.out == ""
    assert heard.err.endswith("Z POST /predict 200\n")
