"""Readers of published images, on small files in exactly the published formats."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from echelon import OrdinalClassifier
from echelon.paper.data import Partition
from echelon.paper.images import (
    read_aes,
    read_afad,
    read_class_folders,
    read_faces,
    read_knees,
    read_morph2,
    read_retina,
)
from tests.paper.partitions import sizes


def draw(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 24), (shade % 256, 100, 50)).save(path)


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
        backbone_options={"widths": (16,), "blocks": 1},
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
        numbers = [int(Path(path).stem) - 9000 for path in found.features[part]["path"]]
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


# ---- raw lists, persons and balance --------------------------------------------------------------


def raw_faces(n: int, seed: int = 0) -> pd.DataFrame:
    """A raw list of MORPH-2: ages in years, several images a person, classes of unequal size."""
    generator = np.random.default_rng(seed)
    ages = np.concatenate([np.arange(16, 49).repeat(24), generator.integers(14, 71, n)])
    persons = np.arange(len(ages)) // 4
    names = [
        f"{person:06d}_{i:02d}M{age}.jpg"
        for i, (person, age) in enumerate(zip(persons, ages, strict=True))
    ]
    return pd.DataFrame({"": names, "id_num": persons, "age": ages})


def test_a_raw_list_is_cut_to_the_papers_ages_and_balanced_within_each_subset(tmp_path) -> None:
    raw_faces(300).to_csv(tmp_path / "raw.csv", index=False)
    faces = read_morph2(tmp_path / "raw.csv", tmp_path)
    for subset, ranks in faces.ranks.items():
        counts = np.bincount(ranks, minlength=33)
        assert counts.min() == counts.max() > 0
        told = [int(Path(path).stem[-2:]) for path in faces.features[subset]["path"]]
        assert told == [16 + rank for rank in ranks]
    shares = np.array(sizes(faces)) / sum(sizes(faces))
    assert shares[0] > 0.7 > shares[2] > shares[1]


def test_persons_stay_in_one_subset_where_that_is_asked_for(tmp_path: Path) -> None:
    frame = raw_faces(0)
    (tmp_path / "parts").mkdir()
    ends = {"train": frame[:602], "valid": frame[602:650], "test": frame[650:]}
    for subset, rows in ends.items():
        rows.assign(age=rows["age"] - 16).to_csv(
            tmp_path / "parts" / f"m_{subset}.csv", index=False
        )

    def persons(partition: Partition) -> list[set[str]]:
        paths = [partition.features[subset]["path"] for subset in ("train", "valid", "test")]
        return [{Path(path).name.split("_")[0] for path in each} for each in paths]

    by_image = persons(read_morph2(tmp_path / "parts", tmp_path))
    assert by_image[0] & by_image[1]  # as published: a person on both sides
    apart = read_morph2(tmp_path / "parts", tmp_path, persons=True)
    train, valid, test = persons(apart)
    assert not train & test
    assert not train & valid
    assert not valid & test
    assert sum(sizes(apart)) == len(frame)
    pd.DataFrame({"": ["a.jpg"], "age": [1]}).to_csv(tmp_path / "n.csv", index=False)
    with pytest.raises(ValueError, match="lacks the column 'id_num'"):
        read_morph2(tmp_path / "n.csv", tmp_path, persons=True)


def test_the_balanced_aes_has_three_classes(tmp_path: Path) -> None:
    scores = np.repeat([0, 1, 2, 3, 4], [4, 60, 200, 90, 6])
    frame = pd.DataFrame(
        {"": [f"{i}-{score + 1}.jpg" for i, score in enumerate(scores)], "category": "urban",
         "beauty_scores": scores}
    )  # fmt: skip
    frame.to_csv(tmp_path / "aes.csv", index=False)
    balanced = read_aes(tmp_path / "aes.csv", tmp_path, balanced=True)
    assert (balanced.classes, balanced.name) == ((2, 3, 4), "aes-balanced")
    for subset, ranks in balanced.ranks.items():
        assert len(set(np.bincount(ranks))) == 1
        told = [int(Path(path).stem[-1]) for path in balanced.features[subset]["path"]]
        assert balanced.labels(subset).tolist() == told


# ---- images that are freely had ------------------------------------------------------------------


def test_knees_have_their_subsets_and_both_of_a_patient_are_one_group(tmp_path: Path) -> None:
    for number, subset in enumerate(("train", "valid", "test")):
        for grade in range(5):
            for side in "LR":
                draw(tmp_path / subset / str(grade) / f"90{number}{grade}{side}.jpg", grade)
    knees = read_knees(tmp_path)
    assert (sizes(knees), knees.classes, knees.name) == ([10, 10, 10], (0, 1, 2, 3, 4), "knees")
    assert knees.groups["train"].tolist() == [f"900{grade}" for grade in range(5) for _ in "LR"]
    assert Path(knees.features["test"]["path"][0]).is_file()


def test_faces_are_cut_to_21_to_60_years_and_balanced(tmp_path: Path) -> None:
    ages = np.concatenate([np.repeat(np.arange(21, 61), 40), [16, 70, 20, 61]])
    (tmp_path / "files").mkdir()
    frame = pd.DataFrame({"file": [f"{i}_{age}.jpg" for i, age in enumerate(ages)], "age": ages})
    frame.to_csv(tmp_path / "faces.csv", index=False)
    faces = read_faces(tmp_path, tmp_path)
    assert faces.classes == tuple(range(21, 61))
    for subset, ranks in faces.ranks.items():
        assert len(set(np.bincount(ranks, minlength=40))) == 1
        path = Path(faces.features[subset]["path"][0])
        assert path.parent == tmp_path / "files"
        assert int(path.stem.split("_")[1]) == faces.labels(subset)[0]


def test_retina_comes_in_its_subsets(tmp_path: Path) -> None:
    arrays = {}
    for number, (subset, rows) in enumerate({"train": 12, "val": 6, "test": 5}.items()):
        arrays[f"{subset}_images"] = np.full((rows, 8, 8, 3), number, dtype=np.uint8)
        arrays[f"{subset}_labels"] = np.arange(rows, dtype=np.uint8).reshape(-1, 1) % 5
    np.savez(tmp_path / "retinamnist.npz", **arrays)
    retina = read_retina(tmp_path / "retinamnist.npz")
    assert (sizes(retina), retina.classes) == ([12, 6, 5], (0, 1, 2, 3, 4))
    assert [int(retina.features[s]["image"][0][0, 0, 0]) for s in ("train", "valid", "test")] == [
        0, 1, 2,
    ]  # fmt: skip


@pytest.mark.realdata
def test_the_real_images(real_data: Path) -> None:
    images = real_data / "images"
    assert sizes(read_retina(images / "retinamnist.npz")) == [1080, 120, 400]
    knees = read_knees(images / "knees")
    assert sizes(knees) == [5778, 826, 1656]
    faces = read_faces(images / "faces", images / "faces")
    assert all(len(set(np.bincount(ranks, minlength=40))) == 1 for ranks in faces.ranks.values())
    assert sizes(faces)[0] > 2000


# ---- what is refused -----------------------------------------------------------------------------


def test_what_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "age": [3, 40]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="there is no folder of images"):
        read_morph2(tmp_path / "a.csv", tmp_path / "none")
    with pytest.raises(ValueError, match="age must give ranks from 0 to 32; these are 3 to 40"):
        read_morph2(tmp_path / "a.csv", tmp_path)
    with pytest.raises(ValueError, match="there is no file"):
        read_aes(tmp_path / "none.csv", tmp_path)
    (tmp_path / "parts").mkdir()
    with pytest.raises(ValueError, match="one CSV file for each of train, valid, test; for train"):
        read_afad(tmp_path / "parts", tmp_path)
    pd.DataFrame({"": [1], "age": [3]}).to_csv(tmp_path / "n.csv", index=False)
    with pytest.raises(ValueError, match="must hold file names; it holds numbers"):
        read_morph2(tmp_path / "n.csv", tmp_path)
