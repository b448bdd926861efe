"""The package as a whole: what importing it costs, and that what is written of it is true."""

import ast
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest

import echelon

ROOT = Path(__file__).parent.parent


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout


HEAVY = (
    "torch", "pandas", "sklearn", "matplotlib", "scipy", "lightning_fabric", "onnx", "transformers",
)  # fmt: skip


def test_import_brings_in_nothing_heavy() -> None:
    code = f"import sys, echelon; print([name for name in {HEAVY} if name in sys.modules])"
    assert run(code).strip() == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["fit", "--help"],
        ["compare", "--help"],
        ["fit", "no-such-file.csv", "--target", "y", "--out", "model"],
        ["fit", "README.md", "--target", "y", "--out", "model", "--no-such-option"],
        ["predict", "no-such-model", "no-such-file.csv", "--out", "out.csv"],
        ["evaluate", "no-such-model", "no-such-file.csv"],
        ["compare", "no-such-file.csv", "--target", "y", "--out", "runs"],
        ["report", "no-such-folder"],
        ["info", "no-such-model"],
        ["export", "no-such-model", "--onnx", "out.onnx"],
        ["grid", "no-such-file.toml", "--out", "runs"],
        ["tune", "no-such-file.csv", "--target", "y", "--out", "tuned"],
        ["tune", "README.md", "--target", "y", "--model", "no-such-model", "--out", "tuned"],
        ["reproduce", "fireman", "--data", "no-such-file.csv", "--out", "runs"],
        ["fit", "README.md", "--target", "y", "--model", "no-such-model", "--out", "model"],
        ["fit", "README.md", "--target", "y", "--out", "no-such-folder/model"],
        ["predict", "README.md", "README.md", "--out", "README.xls"],
    ],
    ids=" ".join,
)
def test_help_and_wrong_use_are_answered_at_once(arguments: list[str]) -> None:
    """What is wrong with a path or an option is said before a second of imports."""
    code = (
        "import sys\n"
        "from echelon.cli.main import main\n"
        f"sys.argv = ['echelon', *{arguments}]\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    code = end.code\n"
        f"print(); print([name for name in {HEAVY} if name in sys.modules], code or 0)"
    )
    assert run(code).splitlines()[-1] == f"[] {0 if '--help' in arguments else 2}"


def test_version_is_written_once() -> None:
    assert version("echelon") == echelon.__version__
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", cited, re.MULTILINE)[1] == echelon.__version__
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "### Fixed" not in text.rpartition("\n## ")[2]  # of the first version, nothing was
    released = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert released[0] in (echelon.__version__, "Unreleased")


def test_the_program_says_its_version_and_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "echelon", "--version"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, f"echelon {echelon.__version__}\n")


def test_everything_public_is_there() -> None:
    for module in (echelon, echelon.functional, echelon.data, echelon.evaluation):
        assert [name for name in module.__all__ if not hasattr(module, name)] == []


# ---- what is imported is declared ----------------------------------------------------------------

_REQUIRED = re.compile(r"(?<![\w.])require\(\s*\"([\w.]+)\"")


def declared() -> tuple[set[str], dict[str, set[str]]]:
    """The distributions of the core, and those of each extra."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(lines: list[str]) -> set[str]:
        return {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in lines}

    extras = {one: names(lines) for one, lines in project["optional-dependencies"].items()}
    return names(project["dependencies"]), extras


def imported(path: Path) -> set[str]:
    """The packages that a module imports, anywhere in it, and those it asks `require` for."""
    found = set(_REQUIRED.findall(path.read_text()))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= {one.value for one in node.args if isinstance(one, ast.Constant)}
    roots = {name.partition(".")[0] for name in found}
    return {name for name in roots if name not in sys.stdlib_module_names} - {"echelon", ""}


_UNNAMED = {"dlib": ["dlib-bin"]}  # distributions that do not say what they bring


@pytest.mark.parametrize(
    "room", sorted({path.parent for path in (ROOT / "src").rglob("*.py")}), ids=lambda one: one.name
)
def test_every_import_is_declared(room: Path) -> None:
    """By the core, or by the extra that the package is asked of."""
    from echelon.extras import _EXTRAS

    core, extras = declared()
    given = packages_distributions()
    for path in room.glob("*.py"):
        for package in imported(path):
            allowed = extras[_EXTRAS[package]] if package in _EXTRAS else core
            if package == "tomli":  # only where Python has no reader of its own
                assert package in core
                continue
            names = given.get(package, _UNNAMED.get(package, [package]))
            brings = {name.lower().replace("_", "-") for name in names}
            assert brings & allowed, f"{path.name} imports {package}, which is not declared"


# ---- a kind of column is one place ---------------------------------------------------------------

_OF_KINDS = ("data/kinds/", "networks/", "paper/")
_MOST_MODULES = 8


def test_few_modules_name_a_kind() -> None:
    """Rows carry their cells by kind, so that another kind is no change to what passes them on."""
    source = ROOT / "src" / "echelon"
    naming = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if name.startswith(_OF_KINDS):
            continue
        nodes = ast.walk(ast.parse(path.read_text()))
        if any(
            isinstance(node, ast.Constant) and node.value in ("text", "image") for node in nodes
        ):
            naming.append(name)
    assert len(naming) <= _MOST_MODULES, naming
    assert not [name for name in naming if name.startswith(("data/", "training/"))]
