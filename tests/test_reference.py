"""The reference: it shows every public name, and what each says of itself stands alone."""

import doctest
import importlib
import inspect
import re
import sys
from typing import Any

import griffe
import pytest

from tests.documents import ROOT
from tests.reference_names import ROOMS, public_names

sys.path.insert(0, str(ROOT / "docs" / "making"))
try:
    from building import commands_page, shown_names
    from docstrings import kept
finally:
    sys.path.pop(0)

_SECTION = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """The sections of a numpydoc docstring by their titles; "" is what stands before them."""
    parts = _SECTION.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def described(section: str) -> dict[str, str]:
    """What a section says of each name in it."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=[*\w])", section.strip("\n")):
        head, _, words = entry.partition("\n")
        for name in head.partition(" : ")[0].split(", "):
            found[name.strip("* ")] = words.strip()
    return found


def parameters_of(value: Any) -> list[str]:
    parameters = inspect.signature(value).parameters.values()
    return [parameter.name for parameter in parameters if parameter.name != "self"]


NAMES = public_names()
DATA = {name for name, value in NAMES.items() if not inspect.isroutine(value)} - {
    name for name, value in NAMES.items() if inspect.isclass(value)
}
CALLED = sorted(set(NAMES) - DATA)


def test_the_pages_show_every_public_name_and_nothing_that_is_not_there() -> None:
    shown = shown_names()
    assert sorted(set(NAMES) - set(shown)) == [], "add them to a page of docs/reference"
    for name in shown:
        if name in ROOMS:
            continue
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), f"there is no {name}"


@pytest.mark.parametrize("name", CALLED)
def test_a_public_name_says_what_it_is_what_it_takes_and_shows_an_example(name: str) -> None:
    text = inspect.getdoc(NAMES[name]) or ""
    parts = sections(text)
    summary = " ".join(parts[""].split("\n\n")[0].split())
    assert summary, "it has a summary"
    assert summary[0] in "0123456789-" or not summary[0].islower() or summary.startswith("log")
    assert re.search(r"[.;:]$", summary), f"the summary is a sentence: {summary}"
    assert ">>>" in parts.get("Examples", ""), "it has an example"
    given = described(parts.get("Parameters", ""))
    if like := re.search(r"[Aa]rguments as in\s+:func:`(\w+)`", parts[""]):
        room = name.rpartition(".")[0]
        other = sections(inspect.getdoc(NAMES[f"{room}.{like[1]}"]) or "")
        given = described(other["Parameters"]) | given
    for parameter in parameters_of(NAMES[name]):
        assert given.get(parameter), f"{parameter} is described"


@pytest.mark.parametrize("name", sorted(set(shown_names()) - DATA - set(ROOMS)))
def test_what_is_said_of_a_parameter_stands_alone(name: str) -> None:
    """A description is more than a word, and needs no other beside it but one that it links."""
    module, _, attribute = name.rpartition(".")
    parts = sections(inspect.getdoc(getattr(importlib.import_module(module), attribute)) or "")
    for section in ("Parameters", "Attributes"):
        for parameter, words in described(parts.get(section, "")).items():
            if not parameter or ":`" in words:  # no such section, or a link
                continue
            assert len(words.split()) > 2, f"{parameter}: {words!r}"
            assert not re.match(r"(Of|As there|That chooses|Those of)\b", words), (
                f"{parameter}: {words!r}"
            )


def shown_members() -> dict[str, list[str]]:
    """The members that the reference shows of each class that it shows."""
    found = {}
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        blocks = re.split(r"^::: ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for block in blocks:
            listed = re.search(r"^      members:\s*(\[.*\]|(?:\n +- \w+)+)", block, re.MULTILINE)
            if listed:
                found[block.split()[0]] = re.findall(r"\w+", listed[1])
    return found


MEMBERS = shown_members()


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_members_say_what_they_are_and_what_they_take(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    shown = getattr(importlib.import_module(module), attribute)
    for member in MEMBERS[name]:
        value = getattr(shown, member)
        parts = sections(inspect.getdoc(value) or "")
        assert parts[""], f"{member} has a docstring"
        taken = parameters_of(value) if callable(value) else []
        given = described(parts.get("Parameters", ""))
        assert sorted(set(taken) - set(given)) == [], f"parameters of {member} are described"


def test_what_the_guides_call_on_a_model_is_in_the_reference() -> None:
    """Methods of a model, and names that a fit leaves on it."""
    shown = {member for members in MEMBERS.values() for member in members}
    shown |= {"set_params", "get_params", "score"}  # of scikit-learn
    for page in (ROOT / "docs").glob("*.md"):
        called = re.findall(r"\b(?:model|tuned)\.(\w+)\(", page.read_text(encoding="utf-8"))
        assert sorted(set(called) - shown) == [], page.name


def test_what_is_no_function_is_described_too_and_its_examples_run() -> None:
    """A docstring below an assignment is seen by griffe alone, so doctest must be handed it."""
    package = griffe.load("echelon", search_paths=[str(ROOT / "src")], resolve_aliases=True)
    run = 0
    for name in sorted(DATA):
        attribute = package[name.removeprefix("echelon.")]
        assert attribute.docstring is not None, f"{name} has no docstring"
        target = attribute.final_target if attribute.is_alias else attribute
        names = dict(vars(importlib.import_module(target.module.path)))
        test = doctest.DocTestParser().get_doctest(attribute.docstring.value, names, name, None, 0)
        failures, tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
        assert failures == 0, name
        run += tried
    assert run >= 5


def test_help_opens_with_the_estimator_and_a_map_of_the_rooms() -> None:
    import echelon

    text = echelon.__doc__
    assert text.index("OrdinalBoosting(random_state=0).fit") < text.index("PyTorch")
    told = {name for name in echelon.__all__ if re.search(rf"\b{name}\b", text)}
    assert set(echelon.__all__) - told <= {"__version__", "Method", "OrdinalModel"}


def test_the_command_line_is_there_with_every_option() -> None:
    import typer

    from echelon.cli.main import app

    page = commands_page()
    for name, command in typer.main.get_command(app).commands.items():
        part = page[page.index(f"{{#{name}}}") :].partition("\n## ")[0]
        for option in command.params:
            spelled = option.opts[0] if option.param_type_name == "option" else option.name
            row = re.search(rf"^\| `{re.escape(spelled)}\b.*\| (.*) \|$", part, re.MULTILINE)
            assert row, f"{name} {spelled}"
            assert re.match(r"[A-Z].*\.", row[1]), f"{name} {spelled}: {row[1]}"


def test_types_of_docstrings_stay_as_they_are_written() -> None:
    import griffe

    text = 'decision : {"median", "mode"} or array of shape (K, K), optional\n    A rule.\n'
    parsed = griffe.parse_numpy(griffe.Docstring(f"Do.\n\nParameters\n----------\n{kept(text)}"))
    (parameter,) = parsed[1].value
    assert parameter.default is None
    assert (
        str(parameter.annotation).strip("\u2060") == '{"median", "mode"} or array of shape (K, K)'
    )
    shared = griffe.Docstring(
        "Do.\n\nParameters\n----------\n"
        + kept("weight, dim\n    See there.\nfirst, last : int\n    K.\n")
    )
    assert [entry.name for entry in griffe.parse_numpy(shared)[1].value] == [
        "weight",
        "dim",
        "first",
        "last",
    ]
