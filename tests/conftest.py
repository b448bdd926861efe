"""What all tests share: real data by name, and no silent skips."""

import os

# Processes stand side by side, and their tensors are small: a second thread of each would only
# spin. (Before anything imports torch.)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# `make test-slow` sets this, for twenty times as many examples of everything that is true of any.
settings.register_profile(
    "echelon",
    deadline=None,
    max_examples=200 if os.environ.get("ECHELON_THOROUGH") else 10,
    derandomize=bool(os.environ.get("CI")),  # a new example fails where someone looks at it
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("echelon")

_DATA = "ECHELON_DATA"
_NO_SKIPS = "ECHELON_NO_SKIPS"


@pytest.fixture
def real_data() -> Path:
    """The folder of real data; a test that uses it must be marked `realdata`."""
    return Path(os.environ[_DATA])


# Files that take long, or wait: begun last, one of them would be waited for alone.
_LONG = (
    "attacks/test_attacks.py", "experiments/test_execute.py", "models/test_onnx.py",
    "models/test_predicting.py", "contracts/test_models.py", "contracts/test_scikit_learn.py",
    "contracts/test_loss_contract.py", "browser/test_page.py", "browser/test_explanation.py",
    "test_running.py", "models/test_network.py", "contracts/test_compile_and_export.py",
    "contracts/test_vision.py", "cli/test_fit.py", "report/test_page.py",
)  # fmt: skip


def _place(item: pytest.Item) -> int:
    name = item.path.as_posix()
    return next((i for i, ending in enumerate(_LONG) if name.endswith(ending)), len(_LONG))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_place)
    if os.environ.get(_DATA):
        return
    left_out = [item for item in items if item.get_closest_marker("realdata")]
    config.stash[_left_out] = len(left_out)
    if hasattr(config, "workeroutput"):  # one of several processes: the first one reports
        config.workeroutput["left_out"] = len(left_out)
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


_left_out = pytest.StashKey[int]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every process collects all tests, so each has left out the same ones."""
    number = getattr(node, "workeroutput", {}).get("left_out", 0)
    node.config.stash[_left_out] = number


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    number = config.stash.get(_left_out, 0)
    if number:
        terminalreporter.write_line(f"left out: {number} tests of real data, as {_DATA} is not set")
    if _forbidden_skips(config, terminalreporter):
        terminalreporter.write_line(f"failed: tests were skipped, which {_NO_SKIPS} forbids")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if (
        reporter is not None
        and _forbidden_skips(session.config, reporter)
        and not session.exitstatus
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _forbidden_skips(config: pytest.Config, reporter: pytest.TerminalReporter) -> bool:
    return bool(os.environ.get(_NO_SKIPS)) and bool(reporter.stats.get("skipped"))


@pytest.fixture(scope="session")
def small_frame() -> Any:
    """A small table with a column `rating`, for runs that take a moment each."""
    import pandas as pd

    from echelon.data import make_friedman

    data = make_friedman(100, num_classes=3, seed=2)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    return frame.assign(rating=data.ranks + 1)
