"""Work on many files: each is a piece of its own, done here or by the workers of a Ray cluster.

Invariant: a piece of `predict` writes one file whole or not at all, under a name made from that of
its input. So a piece whose worker died is done again, and nothing is lost or there twice.
"""

import json
import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from echelon.cli.reading import CHUNK_ROWS, DataDescription
from echelon.cli.scoring import Asked, Scorer
from echelon.storage.atomic import require_empty, sweep

_ENDING = ".parquet"


@dataclass(frozen=True)
class Piece:
    """A file of the data.

    Parameters
    ----------
    file : str
        Its whole path.
    name : str
        That of what is written about it, inside the folder of the output.
    folder : str, optional
        The folder of Parquet files that it is one of.
    """

    file: str
    name: str
    folder: str | None = None


@dataclass(frozen=True)
class Done:
    """What became of a piece: how many rows it had, and what a command adds up.

    Parameters
    ----------
    name : str
    rows, skipped, outside, unlabelled : int
        How many rows there were, how many of them have cells that cannot be read, lie outside what
        the model was trained on, and have no label.
    state : tuple of float
        Of the scores of the rows; see :class:`echelon.evaluation.running.RunningScores`.
    odd : sequence of (column, kind, count, examples)
        Cells that are not what their column is.
    refused : str, optional
        Why it could not be done.
    process : int
        The number of the process that did it.
    """

    name: str
    rows: int = 0
    skipped: int = 0
    outside: int = 0
    unlabelled: int = 0
    state: Sequence[float] = ()
    odd: Sequence[tuple[str, str, int, Sequence[str]]] = ()
    refused: str | None = None
    process: int = 0


@dataclass(frozen=True)
class PieceWork:
    """What is done with every piece: predicted into a folder, or compared with the truth.

    Parameters
    ----------
    model : str
        The whole path of the model.
    described : DataDescription
        All of the data.
    asked : Asked
    out : str, optional
        The folder that predictions are written to; without it, rows are compared with the truth.
    """

    model: str
    described: DataDescription
    asked: Asked
    out: str | None = None

    def do(self, piece: Piece) -> Done:
        """Do a piece, in whatever process this is."""
        from echelon.data.columns import gathered_remarks

        described = replace(self.described, path=Path(piece.file))
        try:
            fitted = _loaded(self.model, os.stat(self.model).st_mtime_ns)
            chunks = _chunks(piece, described)
            with gathered_remarks() as remarks:
                if self.out is None:
                    done = self._compared(piece, fitted, described, chunks)
                else:
                    done = self._predicted(piece, fitted, described, chunks, Path(self.out))
        except (ValueError, OSError) as error:
            text = str(error)
            named = text if piece.file in text else f"{piece.file}: {text}"
            return Done(piece.name, refused=named, process=os.getpid())
        odd = [(*column, each.count, each.examples) for column, each in remarks.unread.items()]
        return replace(done, odd=odd, process=os.getpid())

    def _predicted(
        self, piece: Piece, fitted: Any, described: DataDescription, chunks: Any, out: Path
    ) -> Done:
        place = out / piece.name
        place.parent.mkdir(parents=True, exist_ok=True)
        scorer = Scorer(fitted, self.asked, described)
        for _ in scorer.written(chunks, place):
            pass
        return Done(piece.name, scorer.rows, scorer.skipped, scorer.outside)

    def _compared(self, piece: Piece, fitted: Any, described: DataDescription, chunks: Any) -> Done:
        from echelon.cli.evaluate import compared_rows
        from echelon.evaluation.running import RunningScores

        running = RunningScores(len(fitted.classes_))
        rows = skipped = unlabelled = 0
        for frame in chunks:
            located = described.with_located_images(described.with_codes(frame))
            readable, unread = described.readable(located.reset_index(drop=True))
            skipped += unread
            if not len(readable):
                continue
            truth, predicted, probabilities, without = compared_rows(
                fitted, described, readable, self.asked.decision
            )
            rows, unlabelled = rows + len(truth), unlabelled + without
            running.update(truth, prediction=predicted, probabilities=probabilities)
        state = running.state().tolist()
        return Done(piece.name, rows, skipped, unlabelled=unlabelled, state=state)


def _chunks(piece: Piece, described: DataDescription) -> Iterator[Any]:
    if piece.folder is None:
        return described.chunks()
    from echelon.data.files import part_chunks

    return part_chunks(Path(piece.folder), Path(piece.file), CHUNK_ROWS, described.reading)


@lru_cache(maxsize=1)
def _loaded(model: str, written: int) -> Any:
    """A model, read once by each process as long as its file stays the same."""
    from echelon.models.loading import load

    return load(model)


# ---- which pieces --------------------------------------------------------------------------------


def pieces_of(described: DataDescription) -> list[Piece]:
    """The files of the data, each with the name of what is written about it."""
    from echelon.data.files import STANDARD_INPUT, parquet_parts

    given = described.path if isinstance(described.path, (list, tuple)) else [described.path]
    if any(str(path) == STANDARD_INPUT for path in given):
        raise ValueError(
            "files are read one by one, and the standard input is none; got -: name files"
        )
    pieces = []
    for path in described.paths:
        whole = path.resolve()
        parts = parquet_parts(whole) if whole.is_dir() else []
        if whole.is_dir() and not parts:
            raise ValueError(
                f"a folder of Parquet files or names of files are needed; {path} is a folder "
                f"without any: images are predicted as one table, with --out FILE"
            )
        pieces += [
            Piece(str(part), _named(part.relative_to(whole)), str(whole)) for part in parts
        ] or [Piece(str(whole), _named(Path(whole.name)))]
    twins = {piece.name for piece in pieces}
    if len(twins) < len(pieces):  # files of one name from several folders
        shared = Path(os.path.commonpath([Path(piece.file).parent for piece in pieces]))
        pieces = [
            replace(piece, name=_named(Path(piece.file).relative_to(shared))) for piece in pieces
        ]
    return list({piece.file: piece for piece in pieces}.values())


def _named(path: Path) -> str:
    """The name of a file of predictions.

    Examples
    --------
    >>> _named(Path("year=2024/part-0.parquet")), _named(Path("new.csv"))
    ('year=2024/part-0.parquet', 'new.csv.parquet')
    """
    return path.as_posix() + ("" if path.suffix.lower() == _ENDING else _ENDING)


def whole_paths(described: DataDescription) -> DataDescription:
    """The same data for processes that may stand elsewhere."""
    if described.image is None or described.image_folder is not None:
        folder = described.image_folder
        return replace(described, image_folder=None if folder is None else folder.resolve())
    return replace(described, image_folder=described.paths[0].parent.resolve())


# ---- where they are done -------------------------------------------------------------------------


def require_piece_folder(out: Path, pieces: Sequence[Piece]) -> None:
    """Raise where the predictions of pieces would write over something."""
    require_empty(out)
    inside = [piece.file for piece in pieces if Path(piece.file).is_relative_to(out.resolve())]
    if inside:
        raise ValueError(
            f"--out {out} holds the input {inside[0]}; name a folder that is not read from"
        )


def finished(
    work: PieceWork, pieces: Sequence[Piece], cluster: str | None, workers: int | None = None
) -> Generator[Done, None, None]:
    """Do all pieces, and give each when it is done; raise for the first that cannot be.

    Parameters
    ----------
    work : PieceWork
    pieces : sequence of Piece
    cluster : str, optional
        The address of a Ray cluster, or "local" for one that ends with the work; without it, the
        pieces are done in this process, one after the other.
    workers : int, optional
        How many are done at once on a local cluster; as many as there are cores without it.
    """
    done = map(work.do, pieces) if cluster is None else _on_ray(work, pieces, cluster, workers)
    with closing(done) if isinstance(done, Generator) else nullcontext():
        yield from _heard(done)
    if work.out is not None:
        places = [Path(work.out) / piece.name for piece in pieces]
        for folder in {place.parent for place in places}:
            sweep(folder)  # of what a worker that died left
        lacking = [place for place in places if not place.is_file()]
        if lacking:
            raise RuntimeError(
                f"the predictions {lacking[0]} are not there: all machines of a cluster must share "
                f"that folder; name one that they do"
            )


def _heard(done: Iterable[Done]) -> Iterator[Done]:
    """Pieces that are done, with what is odd about their cells said, and refusals raised."""
    from echelon.data.columns import Remark, Remarks

    for piece in done:
        if piece.refused is not None:
            raise ValueError(piece.refused)
        unread = {(name, kind): Remark(n, tuple(some)) for name, kind, n, some in piece.odd}
        Remarks(unread).say()
        yield piece


def _on_ray(
    work: PieceWork, pieces: Sequence[Piece], address: str, workers: int | None
) -> Generator[Done, None, None]:
    """Done by tasks of Ray Data, which gives what a dead worker was at to another one."""
    from joblib import cpu_count

    from echelon.cluster import connected

    with connected(address, min(workers or cpu_count(), len(pieces))) as cluster:
        for done in _ray_results(cluster.ray, work, pieces):
            cluster.processes.add(done.process)
            yield done


def _ray_results(ray: Any, work: PieceWork, pieces: Sequence[Piece]) -> Iterable[Done]:
    import logging

    from echelon.extras import require

    data = require("ray.data", "Ray clusters")
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    items = [{"number": number} for number in range(len(pieces))]
    tasks = data.from_items(items, override_num_blocks=len(items)).map(
        partial(_piece_row, work, list(pieces)), num_cpus=1
    )
    try:
        for row in tasks.iter_rows():
            yield Done(**json.loads(row["done"]))
    except ray.exceptions.RayError as error:
        reason = str(error).strip().rpartition("\n")[2]
        raise RuntimeError(
            f"the cluster could not finish: {reason}; what was written is whole, and the same "
            f"command with another --out does it again"
        ) from None


def _piece_row(work: PieceWork, pieces: Sequence[Piece], row: dict[str, Any]) -> dict[str, Any]:
    """In a worker: a piece by its number, as Ray Data has rows."""
    from echelon.terminal import speak_plainly

    speak_plainly()
    return {"done": json.dumps(asdict(work.do(pieces[row["number"]])))}
