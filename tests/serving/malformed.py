"""Requests that are wrong, made from right ones: types, sizes, encodings, columns, numbers, depth.

`wrong_requests` gives those that no server may answer with a prediction; `changed_requests` gives
right bodies with some bytes changed, which may or may not still be rows.
"""

import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pandas as pd
import pyarrow
import pyarrow.ipc

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"


@dataclass(frozen=True)
class Sent:
    """A request, and the family that it is of."""

    family: str
    body: bytes
    content_type: str = JSON
    path: str = "/predict"
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)


def stream_of(table: pyarrow.Table, compression: str | None = None) -> bytes:
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with pyarrow.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def right_row(frame: pd.DataFrame) -> dict[str, object]:
    """A row of the table as JSON has it."""
    return json.loads(frame.head(1).to_json(orient="records", date_format="iso"))[0]


class Maker:
    """Makes wrong requests for a model with the columns a, b, c, d, kind and day."""

    def __init__(self, frame: pd.DataFrame, seed: int) -> None:
        self.random, self.frame = random.Random(seed), frame
        self.row = right_row(frame)

    def name(self) -> str:
        return "".join(
            self.random.choices("abcdefgh é\n\"'=;,<>\\\x00\u202e", k=self.random.randint(0, 12))
        )

    def nested(self, depth: int) -> object:
        value: object = self.random.choice([1, "x", None])
        for _ in range(depth):
            value = [value] if self.random.random() < 0.5 else {self.name(): value}
        return value

    def wrong_cell(self) -> object:
        numbers = ["many", "1e999", "x" * self.random.randint(1, 3000), "0x10", "1_000", "1x",
                   [1], {}, {"a": 1}, [], 10**400, -(10**400),
                   self.nested(self.random.randint(1, 30))]  # fmt: skip
        return self.random.choice(numbers)

    # ---- families ----------------------------------------------------------------------------

    def types(self) -> Sent:
        place = self.random.choice(["a", "b", "c", "d"])
        rows: object = {**self.row, place: self.wrong_cell()}
        if self.random.random() < 0.3:
            rows = {
                **self.row,
                "day": self.random.choice([5, 1.5, "yesterday", True, "2024-13-40", [1]]),
            }
        elif self.random.random() < 0.3:
            rows = {**self.row, "kind": self.random.choice([[1], {}, {"x": []}, [[]], "\ud800x"])}
        elif self.random.random() < 0.3:
            rows = self.random.choice(
                [
                    1,
                    "x",
                    None,
                    True,
                    [],
                    [1],
                    [[]],
                    [self.row, 5],
                    {},
                    [{}],
                    [None],
                    10**400,
                    [-(10**400)],
                ]
            )
        return Sent("types", json.dumps(rows).encode())

    def columns(self) -> Sent:
        row = dict(self.row)
        if self.random.random() < 0.5:
            del row[self.random.choice(list(row))]
        else:
            row[f"{self.name()}!"] = 1
        rows = [self.row] * self.random.randint(0, 5) + [row]
        if self.random.random() < 0.5:
            return Sent("columns", json.dumps(rows).encode())
        frame = pd.DataFrame([row])
        if self.random.random() < 0.3:
            return Sent("columns", stream_of(pyarrow.Table.from_pandas(frame)), ARROW)
        return Sent("columns", frame.to_csv(index=False).encode(), CSV)

    def twice(self) -> Sent:
        text = json.dumps(self.row)
        if self.random.random() < 0.5:
            return Sent("twice", (text[:-1] + ', "a": 1}').encode())
        head = ",".join([*self.row, "a"])
        return Sent("twice", f"{head}\n{','.join(['1'] * (len(self.row) + 1))}\n".encode(), CSV)

    def numbers(self) -> Sent:
        digits = "9" * self.random.choice([400, 4000, 5000, 20_000])
        number = self.random.choice(["1e999", "-1e999", "1e400", "NaN", "Infinity", "-Infinity",
                                     digits, f"-{digits}", f"{digits}.{digits}", "0x1F", "1e",
                                     "--1", "01"])  # fmt: skip
        text = json.dumps({**self.row, "a": "@"}).replace('"@"', number)
        if self.random.random() < 0.2:
            frame = self.frame.head(1).assign(a=float("inf"))
            return Sent("numbers", stream_of(pyarrow.Table.from_pandas(frame)), ARROW)
        return Sent("numbers", text.encode())

    def nesting(self) -> Sent:
        depth = self.random.choice([2, 50, 900, 1100, 20_000, 90_000])
        opening = self.random.choice(["[", '{"a":', '[{"a":[', "[[], "])
        closed = self.random.random() < 0.5 and opening == "["
        return Sent("nesting", (opening * (depth // len(opening)) + "]" * depth * closed).encode())

    def encodings(self) -> Sent:
        text = json.dumps({**self.row, "kind": "größer"}, ensure_ascii=False)
        table = self.frame.head(1).assign(kind="größer").to_csv(index=False)
        kind = self.random.choice([JSON, CSV])
        whole = text if kind == JSON else table
        choice = self.random.randrange(5)
        if choice == 0:
            return Sent("encodings", whole.encode("latin-1"), kind)
        if choice == 1:
            return Sent("encodings", whole.encode(self.random.choice(["utf-16", "utf-32"])), kind)
        if choice == 2:
            return Sent(
                "encodings",
                whole.encode(),
                f"{kind}; charset={self.random.choice(['latin-1', 'utf-16', 'x'])}",
            )
        if choice == 3:
            packed = gzip.compress(whole.encode())
            return Sent("encodings", packed, kind, headers={"Content-Encoding": "gzip"})
        return Sent("encodings", gzip.compress(whole.encode()), kind)

    def sizes(self) -> Sent:
        choice = self.random.randrange(6)
        if choice == 0:
            return Sent("sizes", b" " * 200_001)
        if choice == 1:
            return Sent("sizes", b"[" + b",".join([b"{}"] * 501) + b"]")
        if choice == 2:
            return Sent("sizes", b"", self.random.choice([JSON, CSV, ARROW]))
        if choice == 3:
            head = ",".join(self.row)
            return Sent(
                "sizes",
                f"{head}\n{head}\n".encode()[: -self.random.randint(2, 20)]
                + b"\n"
                + b",,,,,\n" * 501,
                CSV,
            )
        if choice == 4:
            return Sent("sizes", f"{','.join(self.row)}\n".encode() + b"," * 100_000, CSV)
        table = pyarrow.Table.from_pandas(
            pd.concat([self.frame.head(251)] * 2), preserve_index=False
        )
        return Sent("sizes", stream_of(table), ARROW)

    def arrow(self) -> Sent:
        frame = self.frame.head(self.random.randint(1, 3))
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
        choice = self.random.randrange(5)
        if choice == 0:
            return Sent("arrow", stream_of(table, self.random.choice(["lz4", "zstd"])), ARROW)
        if choice == 1:
            odd = self.random.choice([
                pyarrow.array([[1]] * len(frame)), pyarrow.array([{"x": 1}] * len(frame)),
                pyarrow.array([b"x"] * len(frame)), pyarrow.array(["x"] * len(frame)),
                pyarrow.array([1] * len(frame), pyarrow.duration("s")),
                pyarrow.array([1] * len(frame), pyarrow.time32("s")),
            ])  # fmt: skip
            return Sent("arrow", stream_of(table.set_column(0, "a", odd)), ARROW)
        if choice == 2:
            content = stream_of(table)
            return Sent("arrow", content[: self.random.randint(0, len(content) // 2)], ARROW)
        if choice == 3:
            return Sent("arrow", self.random.randbytes(self.random.randint(0, 3000)), ARROW)
        return Sent("arrow", stream_of(table.append_column("a", table["b"])), ARROW)

    def requests(self) -> Sent:
        body = json.dumps(self.row).encode()
        choice = self.random.randrange(4)
        if choice == 0:
            path = self.random.choice(
                [
                    "/",
                    "/predict/",
                    "/Predict",
                    "//predict",
                    "/docs",
                    "/predict/../info",
                    "/%00",
                    "/é".encode().decode("latin-1"),
                ]
            )
            return Sent("requests", body, path=path)
        if choice == 1:
            return Sent(
                "requests",
                body,
                method=self.random.choice(["PUT", "DELETE", "PATCH", "GET", "TRACE", "BREW"]),
            )
        if choice == 2:
            return Sent(
                "requests",
                body,
                path=f"/predict?{self.random.choice(['x=1', 'rows=5', '%zz', '&&&'])}",
            )
        return Sent(
            "requests",
            body,
            self.random.choice(
                [
                    "",
                    "text/html",
                    "application/xml",
                    "json",
                    ";",
                    "a/b;c=d;",
                    "x" * 2000,
                    "multipart/form-data; boundary=x",
                ]
            ),
        )


FAMILIES: tuple[Callable[[Maker], Sent], ...] = (
    Maker.types, Maker.columns, Maker.twice, Maker.numbers, Maker.nesting, Maker.encodings,
    Maker.sizes, Maker.arrow, Maker.requests,
)  # fmt: skip


def wrong_requests(frame: pd.DataFrame, count: int, seed: int = 0) -> Iterator[Sent]:
    """So many requests that must be refused, family after family."""
    maker = Maker(frame, seed)
    for number in range(count):
        yield FAMILIES[number % len(FAMILIES)](maker)


def changed_requests(frame: pd.DataFrame, count: int, seed: int = 0) -> Iterator[Sent]:
    """So many right bodies in which some bytes are others, cut out or doubled."""
    draw = random.Random(seed)
    some = frame.head(3)
    bodies = {
        JSON: json.dumps([right_row(frame)] * 2).encode(),
        CSV: some.to_csv(index=False).encode(),
        ARROW: stream_of(pyarrow.Table.from_pandas(some, preserve_index=False)),
    }
    for number in range(count):
        kind = (JSON, CSV, ARROW)[number % 3]
        body = bytearray(bodies[kind])
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(len(body))
            what = draw.randrange(4)
            if what == 0:
                body[place] = draw.randrange(256)
            elif what == 1:
                body[place] ^= 1 << draw.randrange(8)
            elif what == 2:
                del body[place : place + draw.randint(1, 9)]
            else:
                body[place:place] = body[place : place + draw.randint(1, 9)]
        yield Sent("changed", bytes(body), kind)
