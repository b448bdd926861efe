"""The house: tests beside their modules, layers as written, and doors that stay shut."""

import ast
import functools
import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "echelon"
MODULES = sorted(
    path.relative_to(SOURCE)
    for path in SOURCE.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py", "_version.py")
)


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Everything in the syntax tree of a module."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def layers() -> list[str]:
    """The rows of the import-linter contract, the highest first."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (each for each in linter["contracts"] if each["containers"] == ["echelon"])
    return contract["layers"]


def test_every_module_has_a_test_file_of_its_name() -> None:
    """So that whoever changes a module knows where its claims are checked."""
    missing = [
        str(path)
        for module in MODULES
        if not (path := ROOT / "tests" / module.parent / f"test_{module.stem.lstrip('_')}.py")
        .is_file()
    ]  # fmt: skip
    assert missing == []


def test_the_layers_that_contributors_read_are_those_that_are_checked() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.search(r"only from modules further down in this order: (.*?)\.\s", text, re.DOTALL)
    rows = [re.findall(r"`(\w+)`", row) for row in listed.group(1).split(";")]
    assert rows == [re.split(r"\s*\|\s*", layer) for layer in layers()]


def test_no_two_modules_may_import_each_other() -> None:
    """A colon between the modules of a row would let them; every room stands in one row."""
    assert not [layer for layer in layers() if ":" in layer]
    rooms = [room for layer in layers() for room in re.split(r"\s*\|\s*", layer)]
    assert sorted(rooms) == sorted({module.parts[0].removesuffix(".py") for module in MODULES})


def imported(path: Path) -> set[str]:
    """The modules of echelon that a module imports, anywhere in it, without the package's name."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by a relative path"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("echelon.") for name in found if name.startswith("echelon.")}


def private_module(name: str) -> str | None:
    """The private module that an imported name is or stands in."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        if parts[i - 1].startswith("_") and SOURCE.joinpath(*parts[:i]).with_suffix(".py").exists():
            return ".".join(parts[:i])
    return None


def test_no_private_module_is_imported_across_packages() -> None:
    doors = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE)
        room = module.parts[:-1]
        for name in imported(path):
            private = private_module(name)
            if private not in (None, "_version") and tuple(private.split(".")[:-1]) != room:
                doors.add((".".join(module.with_suffix("").parts), private))
    assert sorted(doors) == [], "a package shows in its __init__ what others may use"


def naming(*words: str) -> set[str]:
    """The modules that hold one of these words as a literal of its own."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Constant) and node.value in words
    }


def test_a_kind_of_column_is_one_place() -> None:
    """Whoever adds a kind does not have to look for the others all over the house."""
    rooms = ("data/kinds/", "networks/", "paper/")
    elsewhere = {module for module in naming("text", "image") if not module.startswith(rooms)}
    assert len(elsewhere) <= 8, sorted(elsewhere)


def test_processes_and_renamed_files_have_one_place() -> None:
    assert naming("WORLD_SIZE", "LOCAL_WORLD_SIZE") == {"processes.py"}
    renaming = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.replace", "os.rename")
    }
    assert renaming == {"storage/atomic.py"}


def test_an_image_has_one_word() -> None:
    """The vocabulary says image; a second word for it would be looked for in vain."""
    texts = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js"), *SOURCE.rglob("*.html"),
             *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]  # fmt: skip
    naming = [str(path) for path in texts if "picture" in path.read_text(encoding="utf-8").lower()]
    assert naming == []


def callers(name: str) -> set[str]:
    """The modules that call a function of this name."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
    }


def test_rows_are_divided_and_broken_ones_found_in_one_place() -> None:
    """Two ways to do it would give a fit other rows than the comparison that spoke for it."""
    assert callers("hold_out") == {"data/rows.py"}
    assert callers("find_broken") == {"data/rows.py", "data/kinds/image.py"}


def test_variables_have_nouns_for_names() -> None:
    """One, found and own say nothing of what a variable holds."""
    empty = {"one", "found", "own"}
    named = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in nodes(path)
        if (isinstance(node, ast.Name) and node.id in empty)
        or (isinstance(node, ast.arg) and node.arg in empty)
    ]
    assert named == []


def test_no_module_names_the_reduction_but_its_own_the_table_and_the_package() -> None:
    """What holds for every model is written for all of them, so that none needs to be named."""
    naming = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"OrdinalReduction|models\.reduction", path.read_text(encoding="utf-8"))
    }
    assert naming == {"__init__.py", "models/reduction.py", "models/table.py"}
