"""The README and the docs: their code runs, their commands and links are right."""

import re
import sys
from pathlib import Path

import pytest
import typer

from echelon.cli.main import app
from tests.documents import LANGUAGES, PAGES, ROOT, blocks, commands, name, python_pages, run_python

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

sys.path.insert(0, str(ROOT / "docs" / "making"))
try:
    from building import GENERATED
    from figures import FOLDER, drawn
finally:
    sys.path.pop(0)

MADE = {ROOT / "docs" / page for page in GENERATED}  # with the site

# Pages whose code takes more than a few seconds; tests/slow/test_docs.py runs it.
LONG = {"docs/from/lightgbm-and-autogluon.md", "docs/probabilities.md"}


@pytest.mark.parametrize(
    "page", [page for page in python_pages() if name(page) not in LONG], ids=name
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # where it may write
    run_python(page)


def test_there_is_code_to_run() -> None:
    assert ROOT / "README.md" in python_pages()
    assert {name(page) for page in PAGES} >= LONG


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block} is marked as {block.language!r}"
        if block.language == "toml":
            tomllib.loads(block.code)


def test_the_commands_of_the_pages_are_there_with_their_options() -> None:
    program = typer.main.get_command(app)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for block, words in commands(page):
            if words[0] == "echelon":
                assert words[1] in program.commands, f"{block}: echelon {words[1]}"
                known = {
                    option for one in program.commands[words[1]].params for option in one.opts
                } | {"--help"}
                asked = {word.partition("=")[0] for word in words if word.startswith("--")}
                assert asked <= known, f"{block}: {asked - known} of echelon {words[1]}"
            elif words[0] == "make":
                assert words[1] in targets, f"{block}: make {words[1]}"
            elif words[0] == "python" and words[1].endswith(".py"):
                assert (ROOT / words[1]).is_file(), f"{block}: {words[1]}"
            else:
                assert words[0] in ("pip", "python", "export", "cat", "curl"), f"{block}: {words}"


_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def places(page: Path) -> set[str]:
    """The names of the headings of a page, as links call them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in _LINK.findall(text):
        if "://" in link:
            continue
        path, _, place = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if target in MADE or (target.parent.name == "reference" and target.is_file()):
            continue  # what stands on these is known when the site is built: tests/test_site.py
        assert target.is_file(), f"{name(page)} links to {link}"
        if place and target.suffix == ".md":
            assert place in places(target), f"{name(page)} links to {link}"


def test_the_messages_that_are_explained_are_there() -> None:
    """What troubleshooting quotes, but for the numbers in it, stands in the code."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "src" / "echelon").rglob("*.py")
    )
    quoted = re.findall(r'^\*\*"(.*?)"', page, re.MULTILINE)
    assert len(quoted) > 3
    for message in quoted:
        for words in re.split(r"\.\.\. | \.\.\.|\d+(?:\.\.\d+)?", message):
            assert words.strip() in sources, f"nothing says {words!r}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 130


def test_figures_are_what_the_command_draws() -> None:
    figures = drawn()
    assert {path.name for path in FOLDER.glob("*.svg")} == set(figures)
    for figure, text in figures.items():
        committed = (FOLDER / figure).read_text(encoding="utf-8")
        assert text == committed, f"{figure} is old: run `make figures`"
