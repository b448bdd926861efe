"""How a run of these tests ends when a process of it dies, or a test hangs."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

DIES = "import os, signal\ndef test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n"
HANGS = "import time\ndef test_hangs(): time.sleep(600)\n"
# Many files, as the other worker must not go on through all of them.
GOES_ON = "import time\ndef test_goes_on(): time.sleep(1)\n"


@pytest.mark.parametrize(
    ("content", "said"), [(DIES, "worker restarting disabled"), (HANGS, "in test_hangs")]
)
def test_a_dead_or_hanging_worker_ends_the_run(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "test_00_bad.py").write_text(content)
    for i in range(60):
        (tmp_path / f"test_{i:02d}_good.py").write_text(GOES_ON)
    start = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", str(tmp_path)]
    command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    command += ["--timeout", "3", "-o", "faulthandler_timeout=2", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert time.monotonic() - start < 30
