"""Ten thousand wrong requests to a server in a process of its own: no fault, no hang, no growth."""

from pathlib import Path

import numpy as np
import pandas as pd

from tests.serving.client import serving_process
from tests.serving.conftest import fitted, model_path, table  # noqa: F401 (fixtures)
from tests.serving.test_application import features, records, refuse_all

WARM, WRONG, CHANGED = 2_000, 10_000, 5_000
GROWTH = 32 * 2**20  # bytes


def resident(pid: int) -> int:
    """The bytes that a process has in memory."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def test_ten_thousand_wrong_requests_get_a_sentence_and_leave_nothing_behind(
    model_path: Path,  # noqa: F811
    fitted,  # noqa: F811
    table: pd.DataFrame,  # noqa: F811
) -> None:
    options = ("--max-body", "0.19", "--max-rows", "500", "--max-seconds", "10", "--quiet")
    with serving_process(model_path, *options) as (client, process):
        refuse_all(client, table, WARM, WARM // 2, seed=1)
        before = resident(process.pid)
        refuse_all(client, table, WRONG, CHANGED, seed=2)
        growth = resident(process.pid) - before
        print(f"\n{growth / 2**20:.1f} MiB more after {WRONG + CHANGED:,} wrong requests")
        assert growth < GROWTH
        metrics = client.ask("/metrics").body.decode()
        assert 'status="5' not in metrics
        rows = features(table, 20)
        said = client.ask("/predict", records(rows)).json()["predictions"]
        given = [row["probabilities"] for row in said]
        np.testing.assert_allclose(given, fitted.predict_proba(rows), atol=1e-6)
        process.terminate()
        assert process.wait(20) == 0
