"""Batches from files: every row once, the same from any step on, and shared among processes."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import echelon
from echelon.data.kinds.tabular import TableEncoder
from echelon.data.slices import Slice
from echelon.data.source import scan
from echelon.data.stream import open_stream
from echelon.data.survey import survey
from echelon.models.streaming import weighed
from echelon.training import loop
from echelon.training.batches import Draws
from echelon.training.recipes import make_settings, make_spec
from echelon.training.streams import EncodedStream, interleaved

SPEC = make_spec("default", "corn", "mlp", ("table",), {})


def write(folder, n: int = 1000, files: int = 5, **columns) -> str:
    frame = pd.DataFrame(
        {"x": np.arange(float(n)) / 7, "z": np.arange(n) % 5 / 3.0, "grade": np.arange(n) % 3}
    ).assign(**columns)
    for number, part in enumerate(np.array_split(np.arange(n), files)):
        frame.iloc[part].to_parquet(folder / f"{number}.parquet", row_group_size=40)
    return f"{folder}/*.parquet"


def encoded(path, fraction: float = 0.0, per_class=None, **options) -> EncodedStream:
    known = survey(open_stream(scan(path, "grade", **options)), fraction, 0)
    if per_class is not None:
        known = weighed(known, np.array(per_class))
    encoder = TableEncoder.of(known.table, known.stream.schema, scaling="none")
    return EncodedStream.of(known, encoder)


def feed(rows: EncodedStream, batch_size: int = 32, rank: int = 0, world: int = 1, **overrides):
    settings = make_settings("default", SPEC, 1000, {"batch_size": batch_size, **overrides})
    place = SimpleNamespace(device=torch.device("cpu"), global_rank=rank, world_size=world)
    return rows.feed(settings, 3, place, 0)


@pytest.fixture
def small_buffers(monkeypatch) -> None:
    monkeypatch.setattr("echelon.training.streams._BUFFER_ROWS", 100)
    monkeypatch.setattr("echelon.training.streams._LEAST_BATCHES", 1)


def first_column(batches) -> list[float]:
    return torch.cat([batch.features[:, 0] for batch in batches]).tolist()


def test_an_epoch_has_every_row_once_in_batches_of_one_size(tmp_path, small_buffers) -> None:
    rows = encoded(write(tmp_path))
    batches = list(feed(rows).batches(0, 0))
    assert len(batches) == feed(rows).steps_per_epoch == 32
    assert {len(batch.ranks) for batch in batches} == {31, 32}
    assert sorted(first_column(batches)) == pytest.approx(sorted(np.arange(1000.0) / 7))
    assert first_column(batches) != first_column(feed(rows).batches(1, 0))
    assert first_column(batches) == first_column(feed(rows).batches(0, 0))
    x = torch.cat([batch.features[:, 0] for batch in batches]) * 7
    ranks = torch.cat([batch.ranks for batch in batches])
    assert torch.equal(x.round().long() % 3, ranks)


def test_rows_are_mixed_across_files(tmp_path, small_buffers) -> None:
    batches = list(feed(encoded(write(tmp_path))).batches(0, 0))
    files = [set((batch.features[:, 0] * 7 // 200).long().tolist()) for batch in batches]
    assert np.mean([len(each) for each in files]) > 1.5


def test_held_out_rows_are_not_trained_on(tmp_path, small_buffers) -> None:
    rows = encoded(write(tmp_path), fraction=0.2)
    held = set(np.float32(rows.survey.held.table.numbers[:, 0]))
    seen = set(np.float32(first_column(feed(rows).batches(0, 0))))
    assert not held & seen
    assert len(held) + len(seen) == 1000


@pytest.mark.parametrize("step", [1, 3, 17, 31, 32])
def test_from_any_step_on_the_batches_are_the_same(tmp_path, small_buffers, step) -> None:
    rows = encoded(write(tmp_path))
    whole = list(feed(rows).batches(2, 0))[step:]
    rest = list(feed(rows).batches(2, step))
    assert len(whole) == len(rest)
    for left, right in zip(whole, rest, strict=True):
        assert torch.equal(left.features, right.features)
        assert torch.equal(left.ranks, right.ranks)


def test_what_is_read_before_a_step_is_not_read_again(tmp_path, small_buffers, monkeypatch) -> None:
    rows = encoded(write(tmp_path))
    taken = []
    read = type(rows.survey.stream.reader()).read
    monkeypatch.setattr(
        "echelon.data.stream.StreamReader.read",
        lambda reader, part: taken.append(part) or read(reader, part),
    )
    list(feed(rows).batches(0, 30))
    assert 0 < len(taken) < len(rows.survey.stream.slices) / 2


def test_processes_share_the_rows_and_take_as_many_steps(tmp_path, small_buffers) -> None:
    rows = encoded(write(tmp_path))
    shares = [list(feed(rows, rank=rank, world=2).batches(0, 0)) for rank in (0, 1)]
    assert [len(share) for share in shares] == [32, 32]
    seen = first_column(shares[0]) + first_column(shares[1])
    assert sorted(seen) == pytest.approx(sorted(np.arange(1000.0) / 7))


def test_weights_are_drawn_as_those_of_rows_in_memory(tmp_path, small_buffers) -> None:
    weight = np.where(np.arange(1000) % 10 == 0, 6.0, np.arange(1000) % 2 / 2)
    rows = encoded(write(tmp_path, w=weight), weight="w")
    draws = Draws.of(torch.from_numpy(weight), 1000)
    batches = list(feed(rows).batches(0, 0))
    x = torch.cat([batch.features[:, 0] for batch in batches])
    number = (x * 7).round().long()
    assert torch.equal(number.sort().values, draws.rows.sort().values)
    given = torch.cat([batch.weight for batch in batches])
    torch.testing.assert_close(given, draws.weight[number])
    assert feed(rows).steps_per_epoch == -(-len(draws.rows) // 32)


def test_weights_of_classes_need_no_pass_of_their_own(tmp_path, small_buffers) -> None:
    rows = encoded(write(tmp_path), per_class=[1.0, 4.0, 0.0])
    weight = torch.tensor([1.0, 4.0, 0.0]).double()[torch.arange(1000) % 3]
    draws = Draws.of(weight, 1000)
    batches = list(feed(rows).batches(0, 0))
    number = torch.cat([(batch.features[:, 0] * 7).round().long() for batch in batches])
    assert torch.equal(number.sort().values, draws.rows.sort().values)
    torch.testing.assert_close(torch.cat([b.weight for b in batches]), draws.weight[number])


def test_weights_of_rows_and_of_classes_are_multiplied(tmp_path, small_buffers) -> None:
    weight = 1.0 + np.arange(1000) % 4
    rows = encoded(write(tmp_path, w=weight), per_class=[1.0, 3.0, 0.0], weight="w")
    both = weight * np.array([1.0, 3.0, 0.0])[np.arange(1000) % 3]
    draws = Draws.of(torch.from_numpy(both), 1000)
    batches = list(feed(rows).batches(0, 0))
    number = torch.cat([(batch.features[:, 0] * 7).round().long() for batch in batches])
    assert torch.equal(number.sort().values, draws.rows.sort().values)
    torch.testing.assert_close(torch.cat([b.weight for b in batches]), draws.weight[number])


def test_published_batches_cannot_be_streamed(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"published.* takes all rows of a table in turns"):
        feed(encoded(write(tmp_path)), batches="published")
    weightless = write(tmp_path, w=0.0)
    with pytest.raises(ValueError, match="all training rows have a weight of 0"):
        encoded(weightless, weight="w")


def test_the_fingerprint_knows_the_rows_and_where_they_lie(tmp_path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    settings = make_settings("default", SPEC, 1000, {})
    paths = [
        write(tmp_path / "a"), write(tmp_path / "b", files=2),
        write(tmp_path / "c", x=np.arange(1000.0) / 8),
    ]  # fmt: skip
    marks = [encoded(path).fingerprint(SPEC, settings, 0) for path in (*paths, paths[0])]
    assert marks[0] == marks[3]
    assert len(set(marks)) == 3


def test_pieces_take_turns() -> None:
    slices = [Slice(piece, start, 5) for piece in range(12) for start in (0, 5, 10)]
    order = interleaved(slices, np.random.default_rng(0))
    assert sorted(order) == list(range(36))
    assert len({slices[number].piece for number in order[:8]}) == 8
    for piece in range(12):
        mine = [slices[number].start for number in order if slices[number].piece == piece]
        assert mine == [0, 5, 10]


def test_an_interrupted_fit_of_a_source_goes_on_to_the_same_bits(tmp_path, monkeypatch) -> None:
    path = write(tmp_path, 1200)
    options = {
        "settings": {"max_epochs": 3, "batch_size": 4, "average": 0.9}, "random_state": 3,
        "device": "cpu", "backbone": "mlp", "backbone_options": {"hidden": (8,), "dropout": 0.2},
    }  # fmt: skip
    monkeypatch.setattr("echelon.training.streams._BUFFER_ROWS", 300)
    whole = echelon.OrdinalClassifier(**options).fit(scan(path, "grade"))
    train, steps = loop.train, []

    class StoppedError(Exception):
        pass

    def interrupted(*arguments, **given):
        run_steps = loop._Run.steps

        def counted(run):
            for each in run_steps(run):
                yield each
                steps.append(run.progress.step)
                if len(steps) in (4, 13):
                    raise StoppedError

        with monkeypatch.context() as patch:
            patch.setattr(loop._Run, "steps", counted)
            return train(*arguments, **{**given, "checkpoint_seconds": 0.0})

    monkeypatch.setattr(loop, "train", interrupted)
    for _ in range(2):
        with pytest.raises(StoppedError):
            echelon.OrdinalClassifier(checkpoint_dir=tmp_path / "c", **options).fit(
                scan(path, "grade")
            )
    again = echelon.OrdinalClassifier(checkpoint_dir=tmp_path / "c", **options)
    again.fit(scan(path, "grade"))
    assert len(steps) < 3 * 6 + 4  # it went on, and did not begin anew
    for name, tensor in whole.network_.state_dict().items():
        assert torch.equal(tensor, again.network_.state_dict()[name]), name
