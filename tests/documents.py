"""The code that stands in the README and the docs, found in the pages and run as a reader would."""

import doctest
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])

# What a block of code may be: run as Python, run as a session of Python with its output compared,
# looked at as commands of a shell, read as TOML, or shown as it is.
LANGUAGES = {"python", "pycon", "sh", "toml", "text", "r", "html"}
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of code in a page, with the line that it begins at."""

    page: Path
    line: int
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def name(page: Path) -> str:
    """The path of a page from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The blocks of code of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 2, found[1].strip(), found[2])
        for found in _FENCE.finditer(text)
    ]


def python_pages() -> list[Path]:
    """The pages that have Python in them."""
    return [page for page in PAGES if any(block.language[:2] == "py" for block in blocks(page))]


def run_python(page: Path, until: str = "") -> dict[str, Any]:
    """Run the Python of a page from its top; later blocks know the names of earlier ones.

    With `until`, the last block to run is the first that holds it. The names are given back.
    """
    names: dict[str, Any] = {"__name__": "documented"}
    for block in blocks(page):
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.code  # so that an error names the right line
            exec(compile(code, name(page), "exec"), names)
        elif block.language == "pycon":
            test = doctest.DocTestParser().get_doctest(block.code, names, str(block), None, 0)
            runner = doctest.DocTestRunner(
                verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            )
            said: list[str] = []
            runner.run(test, out=said.append, clear_globs=False)
            assert runner.failures == 0, f"{block}\n{''.join(said)}"
            names.update(test.globs)
        if until and until in block.code:
            break
    return names


def commands(page: Path) -> list[tuple[Block, list[str]]]:
    """The commands of a page, each as its words; comments and what joins commands are left out."""
    found = []
    for block in blocks(page):
        if block.language != "sh":
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words:
                end = next((i for i, word in enumerate(words) if word in ("&&", "|")), len(words))
                if words[:end]:
                    found.append((block, words[:end]))
                words = words[end + 1 :]
    return found
