"""A served model against the model itself: requests a second, delays, and rows a second.

The server is a process of its own on the loopback address, as `echelon serve` starts it; what asks
it is this process, on the same machine. Single rows are sent at a fixed rate, whatever the answers
take, and a delay is counted from the moment at which the request was due: a server that falls
behind cannot hide it. Rows a second of large bodies are a ratio to `predict_proba` of the same
rows, both measured in turns.

That ratio is one of processor seconds, of all that the server does against all that the model does:
a server cannot do the same work and more in less, so it lies below 1, also where other programs
share the machine. The ratio by the clock stands beside it; where the load is above the number of
processors, it says who was let in more often, and may even lie above 1. So do the delays: read them
with the load that is printed.

    python benchmarks/serving.py --rate 200 --seconds 60 --markdown docs/benchmarks.md
"""

import argparse
import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.ipc

import echelon
from echelon.data import make_friedman
from page import environment_line, write_section

ARROW = "application/vnd.apache.arrow.stream"
MODELS = {
    "network": lambda: echelon.OrdinalClassifier(
        backbone="mlp", settings={"max_epochs": 5}, random_state=0, device="cpu"
    ),
    "boosting": lambda: echelon.OrdinalBoosting(rounds=100, random_state=0),
}
BODY_ROWS = 1_000
TURN = 10  # bodies

PREAMBLE = """\
Written by `python benchmarks/serving.py --rate {rate:g} --seconds {seconds:g} --markdown
docs/benchmarks.md`. The server and what asks it share one machine. A delay is counted from the
moment at which a request was due. Rows a second of bodies of 1,000 rows are over those of
`predict_proba` of the same rows, by the processor seconds of both: reading the body, predicting,
and writing the answer in the same format.
"""


def frame_of(rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    data = make_friedman(rows, num_classes=5, seed=seed)
    frame = pd.DataFrame(data.features, columns=[f"V{i}" for i in range(10)])
    return frame.assign(kind=np.where(frame["V2"] > 0.5, "big", "small")), data.ranks


def processor_seconds(pid: int) -> float:
    """What a process has used so far, in all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Connection:
    """One connection that is kept open, for a request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> "Connection":
        """A new one, to the loopback address."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def post(self, body: bytes, kind: str) -> tuple[int, bytes]:
        """The status and the body of the answer to a request."""
        head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head_bytes = await self.reader.readuntil(b"\r\n\r\n")
        lines = head_bytes.decode("latin-1").split("\r\n")
        length = next(
            int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")
        )
        return int(lines[0].split()[1]), await self.reader.readexactly(length)


async def single_rows(
    port: int, bodies: list[bytes], rate: float, seconds: float
) -> dict[str, Any]:
    """Send rows one by one at a rate, on as many connections as are needed; delays in seconds."""
    idle: list[Connection] = [await Connection.to(port) for _ in range(8)]
    delays, errors = [], 0

    async def send(body: bytes, due: float) -> None:
        nonlocal errors
        connection = idle.pop() if idle else await Connection.to(port)
        status, _ = await connection.post(body, "application/json")
        delays.append(time.perf_counter() - due)
        errors += status != 200
        idle.append(connection)

    tasks = []
    start = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = start + number / rate
        pause = due - time.perf_counter()
        if pause > 0:
            await asyncio.sleep(pause)
        tasks.append(asyncio.create_task(send(bodies[number % len(bodies)], due)))
    await asyncio.gather(*tasks)
    spent = time.perf_counter() - start
    for connection in idle:
        connection.writer.close()
    return {"requests": len(delays), "errors": errors, "a_second": len(delays) / spent,
            "delays": np.array(delays)}  # fmt: skip


async def large_bodies(port: int, body: bytes, kind: str, count: int, at_once: int) -> float:
    """The seconds that so many bodies take, a few at once."""
    connections = [await Connection.to(port) for _ in range(at_once)]

    async def work(connection: Connection) -> None:
        for _ in range(count // at_once):
            status, _ = await connection.post(body, kind)
            assert status == 200, status

    start = time.perf_counter()
    await asyncio.gather(*map(work, connections))
    spent = time.perf_counter() - start
    for connection in connections:
        connection.writer.close()
    return spent


def bodies_of(frame: pd.DataFrame) -> dict[str, bytes]:
    sink = io.BytesIO()
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {
        ARROW: sink.getvalue(),
        "text/csv": frame.to_csv(index=False).encode(),
        "application/json": frame.to_json(orient="records").encode(),
    }


def measure(name: str, rate: float, seconds: float, repeats: int) -> dict[str, Any]:
    frame, ranks = frame_of(4000, 0)
    model = MODELS[name]().fit(frame, ranks)
    rows, _ = frame_of(BODY_ROWS, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.echelon"
        model.save(path)
        command = [sys.executable, "-m", "echelon.cli.main", "serve", str(path), "--port", "0"]
        process = subprocess.Popen(
            [*command, "--json", "--quiet"], stdout=subprocess.PIPE, text=True
        )
        try:
            port = int(json.loads(process.stdout.readline())["address"].rpartition(":")[2])
            return {
                "model": name,
                **_single(port, process.pid, rows, rate, seconds),
                **_large(port, process.pid, model, rows, repeats),
                "load": f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors",
            }
        finally:
            process.terminate()
            process.wait(30)


def _single(port: int, pid: int, rows: pd.DataFrame, rate: float, seconds: float) -> dict[str, Any]:
    bodies = [line.encode() for line in rows.to_json(orient="records", lines=True).splitlines()]
    asyncio.run(single_rows(port, bodies, rate, 2))  # so that everything has been used once
    before = processor_seconds(pid)
    found = asyncio.run(single_rows(port, bodies, rate, seconds))
    used = processor_seconds(pid) - before
    found["processor_ms_a_request"] = round(1000 * used / found["requests"], 2)
    delays = 1000 * found.pop("delays")
    found |= {f"p{q:g}_ms": round(float(np.percentile(delays, q)), 2) for q in (50, 95, 99, 99.9)}
    return {**found, "a_second": round(found["a_second"], 1)}


def _large(port: int, pid: int, model: Any, rows: pd.DataFrame, repeats: int) -> dict[str, Any]:
    """Rows a second of large bodies over those of `predict_proba`, in turns."""
    import torch

    torch.set_num_threads(1)  # as the server has it
    bodies = bodies_of(rows)
    names = ("model", *bodies)
    clock: dict[str, list[float]] = {name: [] for name in names}
    used: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(repeats):
        start, before = time.perf_counter(), time.process_time()
        for _ in range(TURN):
            model.predict_proba(rows)
        clock["model"].append(time.perf_counter() - start)
        used["model"].append(time.process_time() - before)
        for kind, body in bodies.items():
            before = processor_seconds(pid)
            clock[kind].append(asyncio.run(large_bodies(port, body, kind, TURN, 2)))
            used[kind].append(processor_seconds(pid) - before)
    # ticks of the processor are coarse, so they are added up; of the clock the best turn counts
    seconds = {name: sum(values) for name, values in used.items()}
    return {
        "predict_proba_rows_a_processor_second": round(
            repeats * TURN * BODY_ROWS / seconds["model"]
        ),
        **{f"ratio {kind}": round(seconds["model"] / seconds[kind], 2) for kind in bodies},
        **{
            f"ratio by the clock {kind}": round(min(clock["model"]) / min(clock[kind]), 2)
            for kind in bodies
        },
    }


def serving_table(found: list[dict[str, Any]]) -> str:
    """Delays of single rows, and bodies beside the model itself."""
    lines = [
        "| single rows | a second | errors | p50 | p99 | p99.9 | processor time a request | load |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in found:
        delays = " | ".join(f"{row[f'p{q}_ms']:.1f} ms" for q in ("50", "99", "99.9"))
        lines.append(
            f"| {row['model']} | {row['a_second']:.0f} | {row['errors']} of {row['requests']:,} | "
            f"{delays} | {row['processor_ms_a_request']:.1f} ms | {row['load']} |"
        )
    lines += [
        "",
        "| bodies of 1,000 rows, over `predict_proba` | Arrow | JSON | CSV |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in found:
        ratios = " | ".join(
            f"{row[f'ratio {kind}']:.2f}" for kind in (ARROW, "application/json", "text/csv")
        )
        lines.append(f"| {row['model']} | {ratios} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=200, help="Single rows a second.")
    parser.add_argument("--seconds", type=float, default=60, help="How long they are sent.")
    parser.add_argument("--repeats", type=int, default=15, help="Turns of the large bodies.")
    parser.add_argument("--models", nargs="+", default=[*MODELS], choices=[*MODELS])
    parser.add_argument("--markdown", type=Path, help="Write the tables to this page, too.")
    asked = parser.parse_args()
    found = []
    for name in asked.models:
        found.append(measure(name, asked.rate, asked.seconds, asked.repeats))
        for key, value in found[-1].items():
            print(f"{key:<60} {value}", flush=True)
        print()
    if asked.markdown is not None:
        preamble = PREAMBLE.format(rate=asked.rate, seconds=asked.seconds)
        text = "\n\n".join([preamble, environment_line(), serving_table(found)])
        write_section(asked.markdown, "Serving", text)


if __name__ == "__main__":
    main()
