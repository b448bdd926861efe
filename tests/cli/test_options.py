"""What several commands take: options that explain themselves, and paths that must be there."""

import os
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import typer

from echelon.cli import options
from echelon.cli.main import app

COMMANDS = {command.callback.__name__: command.callback for command in app.registered_commands}


def texts() -> list[tuple[str, str, str]]:
    found = []
    for name, command in COMMANDS.items():
        hints = get_type_hints(command, include_extras=True)
        hints.pop("return")
        found += [(name, option, get_args(hint)[1].help) for option, hint in hints.items()]
    return found


@pytest.mark.parametrize(("command", "option", "text"), texts(), ids=lambda one: one[:15])
def test_help_is_a_sentence_that_can_be_read_alone(command: str, option: str, text: str) -> None:
    assert text[0].isupper()
    assert text.endswith(".")
    # A name for something, or what happens: never half a sentence that the option's name begins.
    assert re.match(r"(The|A|An|All|What|How|Leave|Keep|Print|Put|Add|Run nothing)\b", text), text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    assert re.search(rf"Example: echelon {name}\b", COMMANDS[name].__doc__ or "")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (options.existing_data, "there is no file {path}"),
        (options.existing_file, "there is no file {path}"),
        (options.existing_model, "there is no model {path}"),
        (options.existing_folder_of_images, "there is no folder of images {path}"),
        (options.existing_folder_of_runs, "{path} has no finished run, as it is no folder"),
    ],
)
@pytest.mark.parametrize("name", ["missing", "table.csv/inside", "x" * 300, "loop"])
def test_a_path_that_is_not_there(folder: Path, check, message: str, name: str) -> None:
    Path("loop").symlink_to("loop")
    with pytest.raises(ValueError, match=re.escape(message.format(path=name))):
        check(Path(name))


@pytest.mark.skipif(os.name == "nt", reason="of POSIX")
def test_a_pipe_is_refused_at_once(folder: Path) -> None:
    os.mkfifo("pipe")
    for check in (options.existing_data, options.existing_file, options.existing_model):
        with pytest.raises(ValueError, match="pipe is a pipe, not a file; name a"):
            check(Path("pipe"))


def test_what_is_there_is_taken(folder: Path) -> None:
    table = Path("table.csv")
    assert options.existing_data(table) == options.existing_file(table) == table
    assert (
        options.existing_data(Path(".")) == options.existing_folder_of_runs(Path(".")) == Path(".")
    )
    assert options.existing_data(None) is options.existing_file(None) is None
    assert options.existing_or_generated(["fireman"]) == ["fireman"]
    with pytest.raises(ValueError, match="folder, not a file; name a model that"):
        options.existing_model(Path("."))


def test_every_help_is_a_sentence_that_stands_alone() -> None:
    """An option is read in a reference, without its neighbours."""
    commands = typer.main.get_command(app).commands
    assert len(commands) > 5
    for command, made in commands.items():
        assert made.help.split("\n\n")[0].strip().endswith("."), command
        for parameter in made.params:
            said = parameter.help or ""
            assert said.endswith("."), (command, parameter.name)
            assert said[0].isupper(), (command, parameter.name)
            assert len(said.split()) >= 4, (command, parameter.name, said)
