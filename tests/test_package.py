"""The package as a whole: what importing it costs, and that what is written of it is true."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import echelon

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout


def test_import_brings_in_nothing_heavy() -> None:
    heavy = "pandas", "sklearn", "matplotlib", "scipy", "lightning_fabric", "onnx", "transformers"
    code = (
        "import sys, torch; before = set(sys.modules); import echelon; "
        f"print([name for name in {heavy} if name in set(sys.modules) - before])"
    )
    assert run(code).strip() == "[]"


def test_version_is_written_once() -> None:
    assert version("echelon") == echelon.__version__


def test_everything_public_is_there() -> None:
    for module in (echelon, echelon.functional, echelon.data, echelon.evaluation):
        assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize(
    "block", re.findall(r"```python\n(.*?)```", README, re.DOTALL), ids=lambda code: code[:25]
)
def test_code_of_the_readme_runs(block: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # where it may write
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_readme_has_code_to_run() -> None:
    assert "```python" in README


def test_tree_of_the_readme_names_every_module() -> None:
    """The tree has a line for every module of the package, and names nothing that is not there."""
    tree = re.search(r"```text\n(.*?)```", README, re.DOTALL).group(1)
    named, folders = set(), []
    for line in tree.splitlines():
        depth, entry = len(line) - len(line.lstrip()), line.split()[0]
        folders = [folder for folder in folders if folder[0] < depth]
        path = "/".join([folder[1] for folder in folders] + [entry.rstrip("/")])
        if entry.endswith("/"):
            folders.append((depth, entry.rstrip("/")))
        named.add(path)
        assert (ROOT / path).exists(), f"{path} is in the tree of the README but not there"
    modules = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if path.name not in ("__init__.py", "_version.py")
    }
    assert modules - named == set()
