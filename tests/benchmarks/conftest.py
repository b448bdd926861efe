"""The benchmarks are scripts beside each other, so their folder is where they find each other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
