"""What the site needs beyond the pages of ``docs``: mkdocs calls the functions named ``on_...``.

Pages that would repeat what stands elsewhere are made while the site is built: the command line
from its help, the examples from their programs, the changelog, the guide for contributors and the
tree of the sources. Names in docstrings become links to their place in the reference, a figure gets
a form for narrow screens, an option in a sentence is not broken at its hyphens, and figures that
belong together stay on one line.
"""

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import tree

ROOT = Path(__file__).parent.parent.parent


# ---- pages ---------------------------------------------------------------------------------------


def commands_page() -> str:
    """The command line, from what ``--help`` says of it."""
    import click
    import typer

    from echelon.cli.main import app

    program = typer.main.get_command(app)
    lines = [
        "# The command line",
        "",
        f"{program.help} Every command has this text as its `--help`. It ends with 0 when it is "
        "done, with 1 when it failed and with 2 when it was called wrongly, and an error is one "
        "line. With `--json` the standard output holds one JSON document and nothing else.",
        "",
    ]
    for name, command in program.commands.items():
        context = click.Context(command, info_name=f"echelon {name}")
        lines += [f"## echelon {name} {{#{name}}}", "", *_help_text(command.help or "")]
        usage = " ".join(command.collect_usage_pieces(context))
        lines += ["```text", f"echelon {name} {usage}", "```", ""]
        lines += ["| option | what it is |", "| --- | --- |"]
        lines += [_option_row(option, context) for option in command.get_params(context)]
        lines.append("")
    return "\n".join(lines)


_OPTION = re.compile(r"(`[^`]*`)|(?<![\w-])(--[a-z][a-z-]*\w)")  # or code, which has them already


def _with_options_as_code(words: str) -> str:
    return _OPTION.sub(lambda match: match[1] or f"`{match[2]}`", words)


def _help_text(text: str) -> list[str]:
    """The paragraphs of a help text, its examples as commands."""
    said, shown = [], []
    for paragraph in text.split("\n\n"):
        words = " ".join(paragraph.split())
        if words.startswith("Example: "):
            shown.append(words.removeprefix("Example: "))
        else:
            said += [_with_options_as_code(words), ""]
    return [*said, "```sh", *shown, "```", ""] if shown else said


def _option_row(option: Any, context: Any) -> str:
    """A row of the table of options, or of arguments."""
    record = option.get_help_record(context)
    names, words = record if record is not None else (option.make_metavar(context), "")
    names = re.sub(
        r"<(?:list\[)?(\w+)\]?>", lambda match: match[1].upper(), names.replace("|", "\\|")
    )
    words = " ".join(words.split()).replace("|", "\\|").replace("<", "&lt;")
    words = _with_options_as_code(words)
    words = re.sub(r" ?\[(default: .*?|required)\]$", r" *\1*", words)
    return f"| `{names.strip()}` | {words} |"


def examples_page() -> str:
    """The programs in ``examples``, each with what it says of itself and its text."""
    lines = [
        "# Examples",
        "",
        "Each is a program that runs as it stands, `python examples/NAME.py`, on data that it makes"
        " itself. The tests run all of them.",
        "",
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        said = ast.get_docstring(ast.parse(text)) or ""
        body = text.split('"""', 2)[-1].strip()
        lines += [f"## {path.stem.replace('_', ' ')} {{#{path.stem}}}", "", said, ""]
        lines += [f'```python title="examples/{path.name}"', body, "```", ""]
    return "\n".join(lines)


def tree_page() -> str:
    """The modules of the package, each with the first line of what it says of itself."""
    lines = [
        "# The source tree",
        "",
        "Every module says in its first line what it is for. `python docs/making/tree.py` prints "
        "this, too.",
        "",
    ]
    for depth, name, words in tree.tree(ROOT / "src" / "echelon"):
        lines.append(f"{'    ' * depth}- `{name}` {words}")
    return "\n".join(lines)


def _moved(name: str) -> Callable[[], str]:
    """A file of the root as a page, with links that lead to the pages of the site."""

    def page() -> str:
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/", "](", text)
        text = re.sub(r"\]\(README\.md\)", "](index.md)", text)
        return re.sub(r"\[([^\]]*)\]\((?!\w+://|#)([^)]*)\)", _kept_link, text)

    return page


def _kept_link(match: re.Match[str]) -> str:
    """A link to a page of the site as it is, any other as its words alone."""
    target = match[2].partition("#")[0]
    known = (ROOT / "docs" / target).is_file() or target in GENERATED
    return match[0] if known else match[1]


GENERATED: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "examples.md": examples_page,
    "extend/tree.md": tree_page,
    "changelog.md": _moved("CHANGELOG.md"),
    "contributing.md": _moved("CONTRIBUTING.md"),
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made from something else."""
    from mkdocs.structure.files import File

    for name, page in GENERATED.items():
        files.append(File.generated(config, name, content=page()))
    return files


# ---- names ---------------------------------------------------------------------------------------

_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):<code>~?([\w.]+)</code>")
_SHOWN = re.compile(r"^::: (echelon[\w.]*)", re.MULTILINE)


def shown_names() -> dict[str, str]:
    """The names that the reference shows, from a page of it to each."""
    return {
        name: page.relative_to(ROOT / "docs").as_posix()
        for page in sorted((ROOT / "docs" / "reference").glob("*.md"))
        for name in _SHOWN.findall(page.read_text(encoding="utf-8"))
    }


def _linked_names(html: str) -> str:
    """Names in docstrings as links, where the reference shows what they name."""
    places = {name.rpartition(".")[2]: name for name in shown_names()}

    def linked(match: re.Match[str]) -> str:
        name = match[1].rpartition(".")[2]
        code = f"<code>{match[1]}</code>"
        if name not in places:
            return code
        return f'<autoref identifier="{places[name]}" optional>{code}</autoref>'

    return _ROLE.sub(linked, html)


# ---- narrow screens ------------------------------------------------------------------------------

_FIGURE = re.compile(r'<img [^>]*src="([^"]*figures/\w+)\.svg"[^>]*>')
_INLINE = re.compile(r"(?<!<pre>)<code>([^<\n]*-[^<\n]*)</code>")
_PAIR = re.compile(r"(?<=\d) ([±/]) (?=\d)")  # 0.70 ± 0.01, or two scores of a cell
_UNSAID = re.compile(r"(?<=</code>)\s+\u2013(?=\s+<div class=\"doc-md-description\">\s+</div>)")
_HYPHENED = re.compile(r"(?<!\S)(?=\S*-)\S{1,28}(?!\S)")  # what a phone has room for


_LONG_CELL = re.compile(r"<td(?=[^>]*>([^\n]{80,})</td>)")


def _with_its_length(match: re.Match[str]) -> str:
    return f'<td class="{"sentences" if len(match[1]) >= 160 else "sentence"}"'


def _with_narrow_figure(match: re.Match[str]) -> str:
    source = f'<source media="(max-width: 600px)" srcset="{match[1]}-narrow.svg">'
    return f"<picture>{source}{match[0]}</picture>"


def _with_whole_options(match: re.Match[str]) -> str:
    words = _HYPHENED.sub(lambda word: f'<span class="whole">{word[0]}</span>', match[1])
    return f"<code>{words}</code>"


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Link names, and fit figures and options to narrow screens."""
    html = _FIGURE.sub(_with_narrow_figure, _linked_names(html))
    html = _LONG_CELL.sub(_with_its_length, html)
    html = _PAIR.sub("\u00a0\\1\u00a0", _UNSAID.sub("", html))
    return _INLINE.sub(_with_whole_options, html)
