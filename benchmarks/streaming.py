"""Fits of a Parquet folder that is never read into memory: peak memory, and an epoch beside memory.

Each fit runs in a process of its own, whose peak memory is that of the process. Rows are Friedman's
with ten columns and K = 16. An epoch is compared by its seconds a row with that of rows in memory.
This is the part `streaming` of `benchmarks/scale.py`; `python benchmarks/streaming.py --sizes
1000000,20000000` runs it alone and prints one JSON document.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SIZES = (1_000_000, 20_000_000)
MEMORY_ROWS = 1_000_000
NUM_CLASSES = 16
FILE_ROWS = 1_000_000
GROUP_ROWS = 100_000
TREES = 20
NAMES = [f"x{i}" for i in range(10)]
TEST_ROWS = 200_000


def write_folder(folder: Path, rows: int, seed: int = 1) -> None:
    """Generated rows as Parquet files of a million rows, in row groups of 100,000."""
    from echelon.data import make_friedman

    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        size = min(FILE_ROWS, rows - start)
        data = make_friedman(size, NUM_CLASSES, seed=1000 * seed + number)
        frame = pd.DataFrame(data.features, columns=NAMES).assign(grade=data.ranks)
        frame.to_parquet(folder / f"{number:03}.parquet", row_group_size=GROUP_ROWS)


def fit(kind: str, folder: str, is_streamed: bool, epochs: int, seed: int) -> dict[str, Any]:
    """One fit in this process: what it took, and what it is worth on new rows."""
    import echelon
    from echelon.data import make_friedman, scan
    from echelon.training import loop

    moments: list[float] = []
    train = loop.train

    def timed(*arguments: Any, **options: Any) -> Any:
        moments.append(time.monotonic())
        note = {"on_epoch": lambda row: moments.append(time.monotonic())}
        return train(*arguments, **{**options, **note})

    loop.train = timed
    parameters: dict[str, Any] = {"random_state": seed}
    if kind == "network":
        parameters |= {"settings": {"max_epochs": epochs}, "device": "cpu"}
    else:
        parameters |= {"rounds": TREES, "threads": 1}
    made = {"network": echelon.OrdinalClassifier, "boosting": echelon.OrdinalBoosting}[kind]
    model = made(**parameters)
    begun = time.monotonic()
    if is_streamed:
        model.fit(scan(f"{folder}/*.parquet", target="grade"))
    else:
        frame = pd.read_parquet(folder)
        model.fit(frame[NAMES], frame["grade"])
    seconds = time.monotonic() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    test = make_friedman(TEST_ROWS, NUM_CLASSES, seed=10**6)
    predicted = model.predict(pd.DataFrame(test.features, columns=NAMES))
    return {
        "rows": model.num_rows_,
        "seconds": seconds,
        "epochs": np.diff(moments).tolist(),
        "peak_mib": peak,
        "mae": float(np.abs(predicted - test.ranks).mean()),
    }


def in_a_process(*arguments: Any) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--fit", json.dumps(arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(
    sizes: list[int], kinds: list[str], *, epochs: int = 1, seeds: int = 1, keep: Path | None = None
) -> list[dict[str, Any]]:
    """Fits of folders of several sizes, and of the smallest in memory."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            folder = (keep or Path(temporary)) / str(size)
            if not folder.is_dir():
                write_folder(folder, size)
            for kind in kinds:
                for seed in range(seeds):
                    for is_streamed in (True, False) if size <= MEMORY_ROWS else (True,):
                        result = in_a_process(kind, str(folder), is_streamed, epochs, seed)
                        rows.append({"kind": kind, "streamed": is_streamed, "seed": seed, **result})
                        print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def measure_streaming(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The part `streaming` of `benchmarks/scale.py`, of a share of the rows."""
    return measure([int(size * options.share) for size in SIZES], ["network", "boosting"])


def streaming_table(rows: list[dict[str, Any]]) -> str:
    """What fits of sources took, with an epoch as a ratio to that of rows in memory."""
    memory = [row for row in rows if not row["streamed"] and row["epochs"]]
    lines = [
        "| model | rows | read | peak MiB | epoch, microseconds a row | over memory | MAE |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        each = min(row["epochs"]) / row["rows"] * 1e6 if row["epochs"] else None
        beside = min((min(m["epochs"]) / m["rows"] * 1e6 for m in memory), default=None)
        ratio = f"{each / beside:.2f}" if each and beside and row["streamed"] else ""
        lines.append(
            f"| {row['kind']} | {row['rows']:,} | {'streamed' if row['streamed'] else 'in memory'} "
            f"| {row['peak_mib']:,.0f} | {'' if each is None else f'{each:.1f}'} | {ratio} "
            f"| {row['mae']:.4f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--kinds", default="network,boosting")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the rows, which then stay")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        print(json.dumps(fit(*json.loads(options.fit))))
        return
    sizes = [int(size) for size in options.sizes.split(",")]
    kinds = options.kinds.split(",")
    rows = measure(sizes, kinds, epochs=options.epochs, seeds=options.seeds, keep=options.keep)
    print(json.dumps(rows))
    print(streaming_table(rows), file=sys.stderr)


if __name__ == "__main__":
    main()
