"""Where the benchmarks write their figures: each keeps one section of a Markdown page."""

import json
import platform
from pathlib import Path
from typing import Any

import torch

import echelon


def environment() -> dict[str, Any]:
    """What the figures may depend on."""
    return {
        "echelon": echelon.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def environment_line() -> str:
    """The environment in one line."""
    return ", ".join(f"{name} {value}" for name, value in environment().items())


def write_results(path: Path, results: Any) -> None:
    """Write results as JSON, with the environment they were found in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"environment": environment(), "results": results}, indent=2) + "\n")
    print(f"wrote {path}")


def write_section(path: Path, title: str, text: str) -> None:
    """Put `text` under the heading `title` of a page, in place of what stood there."""
    page = path.read_text() if path.exists() else "# Benchmarks\n"
    head, *sections = page.split("\n## ")
    section = f"{title}\n\n{text.strip()}\n"
    names = [one.split("\n", 1)[0] for one in sections]
    if title in names:
        sections[names.index(title)] = section
    else:
        sections.append(section)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n## ".join(one.rstrip("\n") + "\n" for one in [head, *sections]))
    print(f"wrote the section {title!r} of {path}")
