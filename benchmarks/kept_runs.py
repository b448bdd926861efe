"""Keep the finished runs of a comparison that takes more than one sitting, or go on with them.

Verdicts come from predictions row by row, so that all runs of a set must stand in one folder. The
image and text sets of docs/reproduction.md take hours; what is done of one is kept in a small file
in `experiments/runs` until the set is whole, and put back on whatever machine goes on with it:

    python benchmarks/kept_runs.py put knees experiments/runs/knees.zip
    python benchmarks/kept_runs.py take experiments/runs/knees.zip knees
    echelon reproduce knees --data knees --seeds 3 --out knees     # makes the runs that are missing

Kept are the settings, scores and predictions of each run. What a run holds to show its rows (texts,
images, cells and names of files) is left out.
"""

import argparse
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from echelon.runs import is_done, read_run, read_runs, write_run
from echelon.storage.atomic import replacing

KEPT_ARRAYS = ("row", "truth", "prediction", "probabilities", "crossings")


def main(arguments: Sequence[str] | None = None) -> None:
    """Put the runs of a folder into a file, or take those of a file into a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("put", "take"))
    parser.add_argument("source", type=Path, help="the folder of runs, or the file of kept ones")
    parser.add_argument("target", type=Path, help="the file to write, or the folder of runs")
    options = parser.parse_args(arguments)
    if options.what == "put":
        names = put(options.source, options.target)
    else:
        names = take(options.source, options.target)
    print(f"{options.what}: {len(names)} runs, now in {options.target}")


def put(folder: Path, file: Path) -> list[str]:
    """Write the runs of a folder into a file, which is replaced; the names of the runs."""
    runs = {run.config.name: run for run in read_runs(folder)}
    file.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        replacing(file) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, run in runs.items():
            arrays = {key: run.predictions[key] for key in KEPT_ARRAYS if key in run.predictions}
            write_run(Path(place) / name, replace(run, predictions=arrays))
            for part in sorted((Path(place) / name).iterdir()):
                archive.write(part, f"{name}/{part.name}")
    return list(runs)


def take(file: Path, folder: Path) -> list[str]:
    """Put the runs of a file into a folder, but for those that are there; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        with zipfile.ZipFile(file) as archive:
            archive.extractall(place)
        taken = [
            source.name for source in sorted(Path(place).iterdir())
            if not is_done(folder / source.name)
        ]  # fmt: skip
        for name in taken:
            write_run(folder / name, read_run(Path(place) / name))
    return taken


if __name__ == "__main__":
    main()
