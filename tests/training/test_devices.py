"""Where a fit runs."""

import subprocess
import sys


def test_fabric_is_not_imported_before_a_fit() -> None:
    code = (
        "import sys, echelon; echelon.OrdinalClassifier(); print('lightning_fabric' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
