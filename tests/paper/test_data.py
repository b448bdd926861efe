"""Readers of published data, on small files in exactly the published formats."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from echelon import OrdinalClassifier
from echelon.paper.data import (
    Partition,
    read_aes,
    read_afad,
    read_class_folders,
    read_coursera,
    read_morph2,
    read_tripadvisor,
)


def sizes(partition: Partition) -> list[int]:
    for part in ("train", "valid", "test"):
        assert len(partition.features[part]) == len(partition.ranks[part])
    return [len(partition.ranks[part]) for part in ("train", "valid", "test")]


def draw(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 24), (shade % 256, 100, 50)).save(path)


# ---- texts ---------------------------------------------------------------------------------------


def test_coursera_balanced(tmp_path: Path) -> None:
    texts = [f"review number {i // 2 if i < 40 else i}" for i in range(400)]  # twenty twins
    frame = pd.DataFrame(
        {"TEXT_COLUMN_NAME": texts, "LABEL_COLUMN_NAME": np.arange(400) // 2 % 5 + 1}
    )
    frame.to_csv(tmp_path / "c.csv", index=False)
    found = read_coursera(tmp_path / "c.csv")
    assert np.abs(np.subtract(sizes(found), [300, 20, 80])).max() <= 4
    assert found.columns_by_kind == {"text": "TEXT_COLUMN_NAME"}
    assert found.classes == (1, 2, 3, 4, 5)
    parts = [set(found.features[part]["TEXT_COLUMN_NAME"]) for part in found.features]
    assert sum(map(len, parts)) == len(set.union(*parts))  # no text is in two of them
    by_text = dict(zip(frame.TEXT_COLUMN_NAME, frame.LABEL_COLUMN_NAME, strict=True))
    for part, rows in found.features.items():  # ranks are in the order of the stars
        expected = [by_text[text] for text in rows["TEXT_COLUMN_NAME"]]
        assert found.labels(part).tolist() == expected
        assert (found.ranks[part] == np.array(expected) - 1).all()
    other = read_coursera(tmp_path / "c.csv", seed=1)
    assert list(other.features["test"].iloc[:, 0]) != list(found.features["test"].iloc[:, 0])


def test_coursera_raw_is_balanced_to_the_rarest(tmp_path: Path) -> None:
    stars = np.repeat([1, 2, 3, 4, 5], [20, 30, 40, 50, 160])
    frame = pd.DataFrame(
        {"Id": range(300), "Review": [f"r {i}" for i in range(300)], "Label": stars}
    )
    frame.to_csv(tmp_path / "c.csv", index=False)
    found = read_coursera(tmp_path / "c.csv")
    ranks = np.concatenate(list(found.ranks.values()))
    assert np.bincount(ranks).tolist() == [20] * 5


def test_tripadvisor_has_1400_a_class(tmp_path: Path) -> None:
    stars = np.repeat([1, 2, 3, 4, 5], [1421, 1793, 1400, 1500, 1450])
    frame = pd.DataFrame({"Review": [f"hotel {i}" for i in range(len(stars))], "Rating": stars})
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = read_tripadvisor(tmp_path / "t.csv")
    assert np.bincount(np.concatenate(list(found.ranks.values()))).tolist() == [1400] * 5
    assert np.abs(np.subtract(sizes(found), [5250, 350, 1400])).max() <= 3


# ---- images --------------------------------------------------------------------------------------


def morph_frame(n: int) -> pd.DataFrame:
    names = [f"{i:06d}_00M{16 + i % 33}.jpg" for i in range(n)]
    columns = ["id_num", "picture_num", "race", "Male", "facial_hair", "glasses", "quality"]
    frame = pd.DataFrame({"": names, "age": np.arange(n) % 33})
    return frame.assign(**dict.fromkeys(columns, 0))


def test_morph2_from_one_file_and_from_three(tmp_path: Path) -> None:
    frame = morph_frame(132)
    for i, name in enumerate(frame[""]):
        draw(tmp_path / "images" / name, i)
    frame.to_csv(tmp_path / "morph2.csv", index=False)
    found = read_morph2(tmp_path / "morph2.csv", tmp_path / "images")
    assert sum(sizes(found)) == 132
    assert (len(found.classes), found.classes[0], found.classes[-1]) == (33, 16, 48)
    for part in found.features:
        for path, rank in zip(found.features[part]["path"], found.ranks[part], strict=True):
            assert Path(path).is_file()
            assert int(Path(path).stem[-2:]) == 16 + rank
    (tmp_path / "parts").mkdir()
    for part, rows in (
        ("train", slice(0, 99)),
        ("valid", slice(99, 105)),
        ("test", slice(105, 132)),
    ):
        frame[rows].to_csv(tmp_path / "parts" / f"morph2_{part}.csv", index=False)
    split = read_morph2(tmp_path / "parts", tmp_path / "images")
    assert sizes(split) == [99, 6, 27]
    assert split.ranks["valid"].tolist() == frame["age"][99:105].tolist()


def test_afad(tmp_path: Path) -> None:
    rows = [
        {"file": f"{i}-0.jpg", "path": f"{18 + i % 13}/{111 + i % 2}/{i}-0.jpg", "age": i % 13,
         "gender": ["male", "female"][i % 2]}
        for i in range(52)
    ]  # fmt: skip
    for i, row in enumerate(rows):
        draw(tmp_path / "AFAD" / row["path"], i)
    pd.DataFrame(rows).to_csv(tmp_path / "afad.csv", index=False)
    found = read_afad(tmp_path / "afad.csv", tmp_path / "AFAD")
    assert found.classes == tuple(range(18, 31))
    for path, age in zip(found.features["train"]["path"], found.labels("train"), strict=True):
        assert Path(path).is_file()
        assert Path(path).parts[-3] == str(age)
    model = OrdinalClassifier(
        backbone="resnet",
        **found.columns_by_kind,
        settings={"max_epochs": 1},
        random_state=0,
        device="cpu",
        classes=found.classes,
        backbone_options={"widths": (4,), "blocks": 1},
    )
    model.fit(
        found.features["train"], found.labels("train"),
        X_val=found.features["valid"], y_val=found.labels("valid"),
    )  # fmt: skip
    assert len(model.predict(found.features["test"])) == len(found.ranks["test"])


@pytest.mark.parametrize("form", ["published", "raw"])
def test_aes(tmp_path: Path, form: str) -> None:
    categories = np.array(["animals", "urban", "people", "nature"])[np.arange(80) % 4]
    scores = ["3,3,3,3,4", "1,2,1,1,1", "5,5,4,4,5", "2,3,2,3", "4,4,4,3,4"]  # means 3.2 .. 3.8
    rounded = np.array([3, 1, 5, 3, 4])
    if form == "raw":
        frame = pd.DataFrame(
            {"#flickr_photo_id": 9000 + np.arange(80), "category": categories,
             "beauty_scores": [scores[i % 5] for i in range(80)]}
        )  # fmt: skip
        frame.to_csv(tmp_path / "aes.tsv", index=False, sep="\t")
        path = tmp_path / "aes.tsv"
    else:
        frame = pd.DataFrame(
            {"": [f"{9000 + i}.jpg" for i in range(80)], "category": categories,
             "beauty_scores": rounded[np.arange(80) % 5] - 1}
        )  # fmt: skip
        frame.to_csv(tmp_path / "aes.csv", index=False)
        path = tmp_path / "aes.csv"
    (tmp_path / "images").mkdir()
    found = read_aes(path, tmp_path / "images")
    assert sum(sizes(found)) == 80
    for part in found.features:
        numbers = [int(Path(one).stem) - 9000 for one in found.features[part]["path"]]
        assert found.labels(part).tolist() == rounded[np.array(numbers) % 5].tolist()
    only = read_aes(path, tmp_path / "images", category="urban")
    assert sum(sizes(only)) == 20
    assert only.name == "aes-urban"
    with pytest.raises(ValueError, match="category must be one of animals"):
        read_aes(path, tmp_path / "images", category="food")


def test_folders_of_classes(tmp_path: Path) -> None:
    for rank, name in enumerate(("low", "mid", "high")):
        for i in range(10):
            draw(tmp_path / name / f"{i}.png", 50 * rank)
    found = read_class_folders(tmp_path, ("low", "mid", "high"))
    assert sum(sizes(found)) == 30
    assert all(
        Path(path).parent.name == label
        for path, label in zip(found.features["train"]["path"], found.labels("train"), strict=True)
    )
    with pytest.raises(
        ValueError, match=r"must be the folders in .*: high, low, mid; got low, high"
    ):
        read_class_folders(tmp_path, ("low", "high"))


# ---- what is refused -----------------------------------------------------------------------------


def test_what_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x"], "age": [40]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="lacks the column 'Review'; it has: a, age"):
        read_tripadvisor(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="there is no folder of images"):
        read_morph2(tmp_path / "a.csv", tmp_path / "none")
    with pytest.raises(ValueError, match="age must give ranks from 0 to 32; these are 40 to 40"):
        read_morph2(tmp_path / "a.csv", tmp_path)
    with pytest.raises(ValueError, match="there is no file"):
        read_aes(tmp_path / "none.csv", tmp_path)
    (tmp_path / "parts").mkdir()
    with pytest.raises(ValueError, match="one CSV file for each of train, valid, test; for train"):
        read_afad(tmp_path / "parts", tmp_path)
    pd.DataFrame({"": [1], "age": [3]}).to_csv(tmp_path / "n.csv", index=False)
    with pytest.raises(ValueError, match="must hold file names; it holds numbers"):
        read_morph2(tmp_path / "n.csv", tmp_path)


@pytest.mark.realdata
def test_the_real_coursera(real_data: Path) -> None:
    found = read_coursera(real_data / "text" / "coursera_balanced.csv")
    assert np.abs(np.subtract(sizes(found), [8888, 593, 2370])).max() <= 10
    train, test = (set(found.features[part].iloc[:, 0]) for part in ("train", "test"))
    assert not train & test
