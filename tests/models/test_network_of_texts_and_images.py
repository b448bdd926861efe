"""The estimator on texts, images and mixed tables: fit, predict, save, load, export, resume."""

from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from PIL import Image

import echelon
from echelon import OrdinalClassifier
from echelon.data import make_reviews
from tests.media import mixed_table, save_tiny_encoder

QUICK = {"settings": {"max_epochs": 2, "batch_size": 16}, "random_state": 0, "device": "cpu"}
SMALL = {
    "table": {"hidden": (8,)}, "text": {"embedding": 8, "hidden": 8}, "image": {"widths": (4, 8)},
}  # fmt: skip


@pytest.fixture(scope="module")
def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    return mixed_table(60)


@pytest.fixture(scope="module")
def model(mixed) -> OrdinalClassifier:
    made = OrdinalClassifier(text="review", image="photo", backbone_options=SMALL, **QUICK)
    return made.fit(*mixed)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return f"hf:{save_tiny_encoder(tmp_path_factory.mktemp('encoder'))}"


def test_a_mixed_table(mixed, model: OrdinalClassifier, tmp_path: Path) -> None:
    frame, _ = mixed
    probabilities = model.predict_proba(frame)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    assert (model.text_column, model.image_column) == ("review", "photo")
    assert model.feature_names_in_.tolist() == list(frame.columns)
    for column, other in (("review", ""), ("size", 9.0), ("photo", np.zeros((12, 12)))):
        changed = frame.assign(**{column: pd.Series([other] * len(frame), dtype=object)})
        if column == "size":
            changed["size"] = 9.0
        assert not np.allclose(model.predict_proba(changed), probabilities)  # every part is read
    model.save(tmp_path / "m")
    loaded = echelon.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame[frame.columns[::-1]]), probabilities)


def test_a_mixed_table_as_onnx(mixed, model: OrdinalClassifier, tmp_path: Path) -> None:
    frame = mixed[0].head(9)
    model.export_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    batch = model.readers_.inputs(model.schema_.read(frame), model.network_.encoder)
    taken = batch.take(np.arange(9))
    feed = {
        "size": frame["size"].to_numpy(),
        "kind": frame["kind"].to_numpy(dtype=object),
        "review": taken["text"].numpy(),
        "photo": taken["image"].numpy(),
    }
    assert {value.name for value in session.get_inputs()} == set(feed)
    found = session.run(["probabilities"], feed)[0]
    np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-5)


@pytest.mark.parametrize("method", echelon.METHODS)
def test_every_method_on_texts(mixed, method: str, tmp_path: Path) -> None:
    frame, ranks = mixed
    made = OrdinalClassifier(method, "lstm", backbone_options=SMALL["text"], **QUICK)
    made.fit(frame["review"], ranks)
    made.save(tmp_path / "m")
    np.testing.assert_array_equal(
        echelon.load(tmp_path / "m").predict_proba(frame["review"]),
        made.predict_proba(frame["review"]),
    )


def test_crossings_of_texts_reach_the_user(mixed) -> None:
    frame, ranks = mixed
    # as it was drawn: biases that start evenly do not cross
    settings = {**QUICK["settings"], "learning_rate": 1e-9, "even_start": False}
    model = OrdinalClassifier(
        "ornn",
        "lstm",
        text="review",
        backbone_options={"embedding": 8, "hidden": 8},
        **QUICK | {"random_state": 1, "settings": settings},
    ).fit(frame[["review"]], ranks)
    curve = model.curve(frame[["review"]])
    assert float(curve.crossings().max()) > 0
    # in the order of the rows, though they were read in that of their length
    rows = [3, 17, 40]
    few = model.curve(frame[["review"]].iloc[rows])
    torch.testing.assert_close(few.crossings(), curve.crossings()[rows])


def test_texts_in_every_shape(mixed) -> None:
    frame, ranks = mixed
    made = OrdinalClassifier(backbone="lstm", backbone_options=SMALL["text"], **QUICK)
    expected = made.fit(frame["review"], ranks).predict_proba(frame["review"])
    for shape in (frame["review"].tolist(), frame[["review"]], frame["review"].to_numpy()):
        np.testing.assert_array_equal(made.predict_proba(shape), expected)
        again = made.fit(shape, ranks)
        np.testing.assert_array_equal(again.predict_proba(shape), expected)


def test_columns_of_another_name_are_refused(mixed) -> None:
    frame, ranks = mixed
    made = OrdinalClassifier(backbone="lstm", backbone_options=SMALL["text"], **QUICK)
    made.fit(frame[["review"]], ranks)
    with pytest.raises(ValueError, match="lacks the column 'review'"):
        made.predict(frame[["kind"]])
    with pytest.raises(ValueError, match="there is no text column 'text'; the columns are: review"):
        made.set_params(text="text").fit(frame[["review"]], ranks)


def test_options_of_any_kind_are_saved(mixed, tmp_path: Path) -> None:
    frame, ranks = mixed
    options = {"hidden": 8, "dropout": np.float32(0.5)}
    made = OrdinalClassifier(backbone="lstm", backbone_options=options, **QUICK)
    made.fit(frame["review"], ranks).save(tmp_path / "m")
    assert echelon.load(tmp_path / "m").backbone_options == {"hidden": 8, "dropout": 0.5}


def test_a_prediction_does_not_depend_on_the_other_rows(mixed, model: OrdinalClassifier) -> None:
    frame = mixed[0].copy()
    frame.loc[3, "review"] = "the course was good " * 60
    whole = model.predict_proba(frame)
    np.testing.assert_allclose(model.predict_proba(frame[5:6])[0], whole[5], atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(frame[::-1])[::-1], whole, atol=1e-6)


def test_texts_that_are_odd(model: OrdinalClassifier, mixed) -> None:
    frame = mixed[0].head(4).copy()
    frame["review"] = ["", None, "👍" * 50, "word " * 25_000]
    assert np.isfinite(model.predict_proba(frame)).all()


def test_a_text_is_learnt() -> None:
    train, test = make_reviews(900, num_classes=3, seed=0), make_reviews(500, num_classes=3, seed=1)
    options = {"embedding": 32, "hidden": 32, "dropout": 0.1}
    model = OrdinalClassifier(
        backbone="lstm",
        backbone_options=options,
        settings={"max_epochs": 12, "learning_rate": 1e-2},
        random_state=0,
        device="cpu",
    )
    model.fit(train.texts, train.ranks)
    found = np.abs(model.predict(test.texts) - test.ranks).mean()
    floor = np.abs((test.bayes_probabilities.cumsum(1) < 0.5).sum(1) - test.ranks).mean()
    constant = np.abs(test.ranks - 1).mean()
    assert floor <= found < floor + 0.35 * (constant - floor)


# ---- pretrained encoders -------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"frozen": True, "pooling": "cls"}])
def test_an_encoder_from_a_folder(mixed, encoder: str, options, tmp_path: Path) -> None:
    frame, ranks = mixed
    made = OrdinalClassifier(backbone=encoder, backbone_options=options, **QUICK)
    made.fit(frame["review"], ranks)
    fresh = echelon.networks.text.PretrainedText.of(encoder.removeprefix("hf:"))
    before, after = fresh.state_dict(), made.network_.backbone.parts["text"].state_dict()
    same = [torch.equal(before[name], after[name]) for name in before]
    assert all(same) if options else not any(same)
    made.save(tmp_path / "m")
    expected = made.predict_proba(frame["review"])
    folder = Path(encoder.removeprefix("hf:"))
    hidden = folder.rename(folder.with_name("elsewhere"))  # all that is needed is in the file
    try:
        found = echelon.load(tmp_path / "m").predict_proba(frame["review"])
    finally:
        hidden.rename(folder)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_an_encoder_that_is_not_there(mixed) -> None:
    frame, ranks = mixed
    with pytest.raises(ValueError, match=r"there is no tokenizer for 'hf:/nowhere'.* a folder"):
        OrdinalClassifier(backbone="hf:/nowhere", **QUICK).fit(frame["review"], ranks)


# ---- images --------------------------------------------------------------------------------------


def test_workers_decide_nothing_and_the_seed_everything(tmp_path: Path) -> None:
    frame, ranks = mixed_table(40, tmp_path)
    paths = [str(tmp_path / name) for name in frame["photo"]]
    options = {"backbone_options": SMALL["image"], **QUICK}
    one, two = (
        OrdinalClassifier(
            backbone="resnet", inputs={"image": {"flip": True, "workers": workers}}, **options
        ).fit(paths, ranks)
        for workers in (0, 3)
    )
    for name, tensor in one.network_.state_dict().items():
        assert torch.equal(tensor, two.network_.state_dict()[name]), name


def test_broken_images_raise_or_are_skipped(tmp_path: Path) -> None:
    frame, ranks = mixed_table(40, tmp_path)
    paths = pd.DataFrame({"photo": [str(tmp_path / name) for name in frame["photo"]]})
    (tmp_path / "7.png").write_bytes(b"no image")
    (tmp_path / "30.png").unlink()
    made = OrdinalClassifier(backbone="resnet", backbone_options=SMALL["image"], **QUICK)
    with pytest.raises(ValueError, match=r"image .*(7|30).png"):
        made.fit(paths, ranks)
    with pytest.warns(UserWarning, match=r"2 of 40 rows are left out.*7.png cannot be read"):
        made.set_params(inputs={"image": {"on_broken": "skip"}}).fit(
            paths, ranks, groups=np.arange(40)
        )
    assert sorted(made.skipped_) == [7, 30]
    with pytest.raises(ValueError, match="on_broken must be 'raise' or 'skip'"):
        made.set_params(inputs={"image": {"on_broken": "ignore"}}).fit(paths, ranks)
    with pytest.raises(ValueError, match="names no image in row 3 of 3"):
        made.predict(pd.DataFrame({"photo": [paths.photo[0], paths.photo[1], None]}))


def test_images_in_every_shape() -> None:
    arrays = np.stack(mixed_table(30)[0]["photo"].to_list())
    ranks = mixed_table(30)[1]
    made = OrdinalClassifier(backbone="resnet", backbone_options=SMALL["image"], **QUICK)
    expected = made.fit(arrays, ranks).predict_proba(arrays)
    opened = [Image.fromarray(one) for one in arrays]
    for shape in (list(arrays), opened, pd.Series(opened), np.stack([arrays] * 3, -1)):
        np.testing.assert_array_equal(made.predict_proba(shape), expected)


# ---- what is around them -------------------------------------------------------------------------


def test_a_fit_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch) -> None:
    from echelon.training import loop

    frame, ranks = mixed_table(40)
    options = {"text": "review", "image": "photo", "backbone_options": SMALL, **QUICK}
    whole = OrdinalClassifier(**options).fit(frame, ranks)
    train = loop.train

    def interrupted(*args, **named):
        def stop(row: dict[str, float]) -> None:
            raise KeyboardInterrupt

        return train(*args, **{**named, "checkpoint_seconds": 0.0, "on_epoch": stop})

    monkeypatch.setattr(loop, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        OrdinalClassifier(checkpoint_dir=tmp_path, **options).fit(frame, ranks)
    monkeypatch.setattr(loop, "train", train)
    assert (tmp_path / "checkpoint.safetensors").is_file()
    resumed = OrdinalClassifier(checkpoint_dir=tmp_path, **options).fit(frame, ranks)
    for name, tensor in whole.network_.state_dict().items():
        assert torch.equal(tensor, resumed.network_.state_dict()[name]), name
    changed = frame.assign(review="other")
    with pytest.raises(ValueError, match="is of another run"):
        OrdinalClassifier(checkpoint_dir=tmp_path, **options).fit(changed, ranks)


def test_cross_validation_on_texts(mixed) -> None:
    frame, ranks = mixed
    made = OrdinalClassifier(backbone="lstm", backbone_options=SMALL["text"], **QUICK)
    curve = echelon.cross_val_curve(made, [f"{t} {i}" for i, t in enumerate(frame["review"])],
                                    ranks, folds=2)  # fmt: skip
    assert curve.log_probabilities.shape == (60, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backbone": "lstm"}, "needs a column of texts, and none was named"),
        ({"text": "revew"}, "there is no text column 'revew'; the columns are: size, kind"),
        ({"text": "review", "inputs": {"text": {"words": 3}}}, "do not take these options"),
        (
            {"image": "photo", "inputs": {"image": {"preprocessing": "x"}}},
            "must be one of own",
        ),
        ({"text": "review", "backbone": torch.nn.Identity()}, "reads one kind of input, and"),
        ({"text": "review", "backbone_options": {"text": {"cells": 1}}}, "does not take these"),
    ],
)
def test_what_is_refused(mixed, options, message: str) -> None:
    frame, ranks = mixed
    if "image" not in options:  # pixels are no category
        with pytest.raises(
            ValueError, match=r"column 'photo' holds .* name it as the image column"
        ):
            OrdinalClassifier(**QUICK).fit(frame, ranks)
        frame = frame.drop(columns="photo")
    with pytest.raises(ValueError, match=message):
        OrdinalClassifier(**QUICK, **options).fit(frame, ranks)


def test_odd_shapes_of_texts(mixed) -> None:
    frame, ranks = mixed
    texts = [float("nan"), *frame["review"][1:]]
    made = OrdinalClassifier(backbone="lstm", backbone_options=SMALL["text"], **QUICK)
    expected = made.fit(texts, ranks).predict_proba(texts)
    as_strings = pd.Series(texts, name="review").convert_dtypes().to_frame()
    other = OrdinalClassifier(
        text="review", backbone_options=SMALL["text"], backbone="lstm", **QUICK
    )
    np.testing.assert_array_equal(other.fit(as_strings, ranks).predict_proba(as_strings), expected)
    with pytest.raises(ValueError, match="several columns named 'review'"):
        other.predict(pd.concat([as_strings, as_strings], axis=1))
    with pytest.raises(ValueError, match="cannot hold both texts and images"):
        OrdinalClassifier(text="review", image="review").fit(frame, ranks)


def test_short_texts_as_onnx(mixed, tmp_path: Path) -> None:
    frame, ranks = mixed
    made = OrdinalClassifier(
        backbone="lstm", inputs={"text": {"max_tokens": 3}}, backbone_options=SMALL["text"], **QUICK
    ).fit(frame["review"], ranks)
    made.export_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    tokens = made.readers_.encodings["text"].encode(frame["review"][:5]).take(np.arange(5)).numpy()
    (name,) = (one.name for one in session.get_inputs())
    found = session.run(["probabilities"], {name: tokens})[0]
    np.testing.assert_allclose(found, made.predict_proba(frame["review"][:5]), atol=1e-5)
