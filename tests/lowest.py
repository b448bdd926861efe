"""Print the lowest versions of the dependencies of the core, which `make test-lowest` installs.

torch is the one of constraints.txt: older ones bring gigabytes for graphics cards with them.
"""

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


def lowest() -> list[str]:
    """A pin for each dependency of the core."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = []
    for line in project["dependencies"]:
        requirement, _, marker = line.partition(";")
        name, version = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement.strip()).groups()
        if name == "torch":
            version = re.search(r"^torch==(\S+)$", constraints, re.MULTILINE)[1]
        pins.append(f"{name}=={version}{f'; {marker.strip()}' if marker else ''}")
    return pins


if __name__ == "__main__":
    print("\n".join(lowest()))
