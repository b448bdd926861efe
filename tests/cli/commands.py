"""Commands of the program, run in the process of a test."""

from typer.testing import CliRunner

from echelon.cli.main import app

QUICK = ("--max-epochs", "2", "--device", "cpu")


def run(*arguments: str) -> str:
    """Run a command as the program would; what it prints."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout
