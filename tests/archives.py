"""Look at a wheel and a source archive: everything that belongs there, and nothing stray.

``python tests/archives.py dist`` is the end of `make package`; it ends with 1 at any fault.
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "echelon"
_MOST_BYTES = 5 << 20


def tracked() -> set[str]:
    """The files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return set(listed.stdout.splitlines())


def wheel_faults(path: Path) -> list[str]:
    """What is missing in a wheel, or should not be there."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
    modules = {name.removeprefix("src/") for name in tracked() if name.startswith("src/")}
    inside = {name for name in names if ".dist-info/" not in name}
    about = {name.partition(".dist-info/")[2] for name in names - inside}
    faults = [f"{path.name} lacks {name}" for name in sorted(modules - inside)]
    faults += [f"{path.name} holds {name}, which is stray" for name in sorted(inside - modules)]
    needed = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    return faults + [f"{path.name} lacks its {name}" for name in sorted(needed - about)]


def source_faults(path: Path) -> list[str]:
    """What is missing in a source archive, or should not be there."""
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
    names = {member.name.partition("/")[2] for member in members}
    known = tracked()
    faults = [f"{path.name} holds {name}, which is stray" for name in sorted(names - known)
              if name != "PKG-INFO"]  # fmt: skip
    needed = {name for name in known if name.startswith(("src/", "tests/", "examples/"))}
    needed |= {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"}
    return faults + [f"{path.name} lacks {name}" for name in sorted(needed - names)]


def main(folder: Path) -> int:
    """Look at the archives of a folder; 0 where all is well."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    faults = [fault for path in wheels for fault in wheel_faults(path)]
    faults += [fault for path in sources for fault in source_faults(path)]
    if (len(wheels), len(sources)) != (1, 1):
        faults.append(f"{folder} must hold one wheel and one source archive")
    faults += [
        f"{path.name} has {path.stat().st_size:,} bytes, which is too many"
        for path in (*wheels, *sources)
        if path.stat().st_size > _MOST_BYTES
    ]
    print("\n".join(faults) or f"{folder}: nothing missing and nothing stray")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
