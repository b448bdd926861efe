"""The source tree, with the first line of what each module says of itself.

``python docs/making/tree.py`` prints it; the site shows it.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def summary(path: Path) -> str:
    """The first line of a module's docstring, as one that a list may hold."""
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return words.split("\n\n")[0].replace("\n", " ").strip()


def tree(folder: Path, depth: int = 0) -> list[tuple[int, str, str]]:
    """Depth, name and summary of everything in a package, modules before packages.

    >>> [entry[1:] for entry in tree(ROOT / "src" / "echelon") if entry[1] == "curve.py"]
    [('curve.py', 'The curve that every method ends in, and what is read off it.')]
    """
    entries = [(depth, f"{folder.name}/", summary(folder / "__init__.py"))]
    for path in sorted(folder.glob("*.py")):
        if path.name not in ("__init__.py", "_version.py"):
            entries.append((depth + 1, path.name, summary(path)))
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        entries += tree(inner, depth + 1)
    return entries


def text() -> str:
    """The tree of the package as plain lines."""
    return "\n".join(
        f"{'  ' * depth}{name:<{26 - 2 * depth}}{words}"
        for depth, name, words in tree(ROOT / "src" / "echelon")
    )


if __name__ == "__main__":
    print(text())
