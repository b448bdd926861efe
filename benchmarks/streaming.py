"""Fits of a Parquet folder that is never read into memory: peak memory, and an epoch beside memory.

Each fit runs in a process of its own, on one thread, whose peak memory is that of the process. Rows
are Friedman's with ten columns and K = 16. An epoch is compared by its seconds of the processor a
row with that of rows in memory. This is the part `streaming` of `benchmarks/scale.py`; alone it
prints one JSON document, and on standard error a table and whether each promise holds:

    python benchmarks/streaming.py --sizes 1000000,20000000 --results build/streaming.jsonl
    python benchmarks/streaming.py --sizes 1000000 --kinds network --seeds 5 --epochs 5 --results F

Fits that stand in the file of results are not made again, so that either may be stopped at any time
and started anew. The first is about memory and epochs; the second about what streamed networks are
worth beside those in memory. With `--markdown`, all fits of the file go to a section of that page.
"""

import argparse
import itertools
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
# What is promised.
MOST_MIB = {"network": 1.5 * 1024, "boosting": 4 * 1024}
MOST_EPOCH = 1.25  # seconds a row, over those of the most rows in memory
FLAT = 1.25  # the peak of the largest folder over that of the smallest, of networks
SAME_MAE = 0.003  # the share by which the MAE may differ from that in memory

PREAMBLE = """\
Written by `python benchmarks/streaming.py --results FILE --markdown docs/benchmarks.md`. Rows are
Friedman's with ten columns and K = 16, in Parquet files of a million; each fit is a process of its
own with one thread, and its peak is that of the whole process. An epoch is in seconds of the
processor, over that of 1,000,000 rows in memory; boosting has {trees} rounds.
"""


def write_folder(folder: Path, rows: int, seed: int = 1) -> None:
    """Generated rows as Parquet files of a million rows, in row groups of 100,000."""
    from echelon.data import make_friedman

    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        size = min(FILE_ROWS, rows - start)
        data = make_friedman(size, NUM_CLASSES, seed=1000 * seed + number)
        frame = pd.DataFrame(data.features, columns=NAMES).assign(grade=data.ranks)
        frame.to_parquet(folder / f"{number:03}.parquet", row_group_size=GROUP_ROWS)


def fit(
    kind: str, folder: str, is_streamed: bool, epochs: int, seed: int, backbone: str
) -> dict[str, Any]:
    """One fit in this process: what it took, and what it is worth on new rows."""
    import echelon
    from echelon.data import make_friedman, scan
    from echelon.training import loop

    moments: list[float] = []
    train = loop.train

    def timed(*arguments: Any, **options: Any) -> Any:
        moments.append(time.process_time())
        note = {"on_epoch": lambda row: moments.append(time.process_time())}
        return train(*arguments, **{**options, **note})

    loop.train = timed
    parameters: dict[str, Any] = {"random_state": seed}
    if kind == "network":
        settings = {"max_epochs": epochs, "networks": 1, "refit": False}
        parameters |= {"settings": settings, "device": "cpu", "backbone": backbone}
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
    sizes: list[int],
    kinds: list[str],
    *,
    epochs: int = 1,
    seeds: int = 1,
    backbone: str = "mlp",
    keep: Path | None = None,
    results: Path | None = None,
) -> list[dict[str, Any]]:
    """Fits of folders of several sizes, and of the smaller ones in memory.

    Parameters
    ----------
    keep : Path, optional
        A folder for the rows, which then stay.
    results : Path, optional
        A file with a line for each fit; those that stand there are not made again.
    """
    known = {_key(row): row for row in read_fits(results)}
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        for size, kind, seed in itertools.product(sizes, kinds, range(seeds)):
            for is_streamed in (True, False) if size <= MEMORY_ROWS else (True,):
                asked = {
                    "kind": kind, "size": size, "streamed": is_streamed, "seed": seed,
                    "asked_epochs": epochs if kind == "network" else TREES,
                    "backbone": backbone if kind == "network" else "",
                }  # fmt: skip
                if _key(asked) not in known:
                    folder = (keep or Path(temporary)) / str(size)
                    if not folder.is_dir():
                        write_folder(folder, size)
                    took = in_a_process(kind, str(folder), is_streamed, epochs, seed, backbone)
                    known[_key(asked)] = {**asked, **took}
                    if results is not None:
                        results.parent.mkdir(parents=True, exist_ok=True)
                        with results.open("a") as stream:
                            stream.write(json.dumps(known[_key(asked)]) + "\n")
                found.append(known[_key(asked)])
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def read_fits(results: Path | None) -> list[dict[str, Any]]:
    """The fits that stand in a file of results."""
    if results is None or not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines()]


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("kind", "size", "streamed", "seed", "asked_epochs", "backbone")
    return tuple(row[name] for name in names)


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """What is promised of streamed fits, each in a line that says whether it holds."""
    said = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        streamed = [row for row in rows if row["kind"] == kind and row["streamed"]]
        memory = [row for row in rows if row["kind"] == kind and not row["streamed"]]
        peak, most = max(row["peak_mib"] for row in streamed), MOST_MIB[kind]
        said.append(_line(f"{kind}: peak of {peak:,.0f} MiB, below {most:,.0f}", peak < most))
        peaks = {row["size"]: row["peak_mib"] for row in streamed}
        if len(peaks) > 1 and kind == "network":  # boosting keeps a byte a value
            growth = peaks[max(peaks)] / peaks[min(peaks)]
            text = f"{kind}: peak from {min(peaks):,} to {max(peaks):,} rows: {growth:.2f} times"
            said.append(_line(f"{text}, at most {FLAT}", growth <= FLAT))
        if memory and memory[0]["epochs"]:
            beside = seconds_in_memory(memory)
            for size in peaks:
                ours = min(seconds_a_row(row) for row in streamed if row["size"] == size)
                text = f"{kind}: an epoch of {size:,} rows streamed, a row over memory"
                ratio = ours / beside
                said.append(
                    _line(f"{text}: {ratio:.2f}, at most {MOST_EPOCH}", ratio <= MOST_EPOCH)
                )
        said += _mae_verdict(kind, streamed, memory)
    return said


def _mae_verdict(
    kind: str, streamed: list[dict[str, Any]], memory: list[dict[str, Any]]
) -> list[str]:
    """The error of streamed fits beside those of the same rows and seeds in memory."""
    pairs = _pairs(streamed, memory)
    if kind != "network" or len(pairs) < 2:
        return []
    ours, theirs, away, noise = _beside(pairs)
    text = f"{kind}: MAE streamed {ours:.5f}, in memory {theirs:.5f}, {len(pairs)} fits each"
    text += f": {100 * away:+.2f} % (standard error {100 * noise:.2f} %), within {100 * SAME_MAE} %"
    return [_line(text, abs(away) <= SAME_MAE)]


def _pairs(
    streamed: list[dict[str, Any]], memory: list[dict[str, Any]]
) -> list[tuple[float, float]]:
    """The errors of fits of the same rows with the same seed, streamed and in memory."""
    errors = {(row["size"], row["seed"]): row["mae"] for row in memory}
    return [
        (row["mae"], errors[row["size"], row["seed"]])
        for row in streamed
        if (row["size"], row["seed"]) in errors
    ]


def _beside(pairs: list[tuple[float, float]]) -> tuple[float, float, float, float]:
    """Both mean errors, the share by which the first is larger, and the standard error of that."""
    ours, theirs = np.array(pairs).T
    noise = (ours / theirs).std(ddof=1) / len(pairs) ** 0.5
    return ours.mean(), theirs.mean(), ours.mean() / theirs.mean() - 1, noise


def _line(text: str, holds: bool) -> str:
    return f"{'holds' if holds else 'FAILS'}  {text}"


def seconds_in_memory(memory: list[dict[str, Any]]) -> float:
    """Seconds a row of the most rows that were in memory, with the best seed."""
    most = max(row["size"] for row in memory)
    return min(seconds_a_row(row) for row in memory if row["size"] == most)


def seconds_a_row(row: dict[str, Any]) -> float:
    """Of the quickest epoch."""
    return float(min(row["epochs"]) / row["rows"])


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
        each = 1e6 * seconds_a_row(row) if row["epochs"] else None
        beside = 1e6 * seconds_in_memory(memory) if memory else None
        ratio = f"{each / beside:.2f}" if each and beside and row["streamed"] else ""
        lines.append(
            f"| {row['kind']} | {row['rows']:,} | {'streamed' if row['streamed'] else 'in memory'} "
            f"| {row['peak_mib']:,.0f} | {'' if each is None else f'{each:.1f}'} | {ratio} "
            f"| {row['mae']:.4f} |"
        )
    return "\n".join(lines)


def page_text(rows: list[dict[str, Any]]) -> str:
    """All fits: one by one those of a single seed, and together those of several."""
    from page import environment_line

    seeds = {_group(row): {other["seed"] for other in rows if _group(other) == _group(row)}
             for row in rows}  # fmt: skip
    alone = [row for row in rows if len(seeds[_group(row)]) == 1]
    texts = [PREAMBLE.format(trees=TREES), environment_line()]
    if alone:
        texts.append(streaming_table(alone))
    lines = [
        "| networks of the same rows and seeds | seeds | MAE streamed | MAE in memory | streamed "
        "over memory | standard error |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for group in dict.fromkeys(_group(row) for row in rows if len(seeds[_group(row)]) > 1):
        fits = [row for row in rows if _group(row) == group]
        pairs = _pairs(
            [row for row in fits if row["streamed"]], [row for row in fits if not row["streamed"]]
        )
        if len(pairs) > 1:
            ours, theirs, away, noise = _beside(pairs)
            _, size, epochs, backbone = group
            lines.append(
                f"| {backbone}, {size:,} rows, {epochs} epochs | {len(pairs)} | {ours:.4f} | "
                f"{theirs:.4f} | {100 * away:+.2f} % | {100 * noise:.2f} % |"
            )
    return "\n\n".join([*texts, *(["\n".join(lines)] if len(lines) > 2 else [])])


def _group(row: dict[str, Any]) -> tuple[Any, ...]:
    """What fits of several seeds have in common."""
    return tuple(row[name] for name in ("kind", "size", "asked_epochs", "backbone"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--kinds", default="network,boosting")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--backbone", default="mlp", help="of the networks")
    parser.add_argument("--keep", type=Path, help="a folder for the rows, which then stay")
    parser.add_argument("--results", type=Path, help="a file of fits, which are not made again")
    parser.add_argument("--markdown", type=Path, help="write all fits to this page, too")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        print(json.dumps(fit(*json.loads(options.fit))))
        return
    sizes = [int(size) for size in options.sizes.split(",")]
    kinds = options.kinds.split(",")
    rows = measure(
        sizes, kinds, epochs=options.epochs, seeds=options.seeds, backbone=options.backbone,
        keep=options.keep, results=options.results,
    )  # fmt: skip
    print(json.dumps(rows))
    print("\n".join([streaming_table(rows), "", *verdicts(rows)]), file=sys.stderr)
    if options.markdown is not None:
        from page import write_section  # which a fit would have in its memory

        everything = read_fits(options.results) or rows
        write_section(options.markdown, "Larger than memory", page_text(everything))


if __name__ == "__main__":
    main()
