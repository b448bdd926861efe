"""MedMNIST's files: read as they are, refused where they are not what they say."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from echelon.data.files import read_table
from echelon.data.formats import Reading
from echelon.data.medmnist import medmnist_table, read_medmnist

ROWS = {"train": 12, "val": 6, "test": 5}


def arrays(**changed) -> dict[str, np.ndarray]:
    made = {}
    for number, (subset, rows) in enumerate(ROWS.items()):
        made[f"{subset}_images"] = np.full((rows, 8, 8, 3), number, dtype=np.uint8)
        made[f"{subset}_labels"] = np.arange(rows, dtype=np.uint8).reshape(-1, 1) % 5
    return made | changed


@pytest.fixture
def file(tmp_path: Path) -> Path:
    np.savez(tmp_path / "set.npz", **arrays())
    return tmp_path / "set.npz"


def test_subsets_are_what_was_published(file: Path) -> None:
    subsets = read_medmnist(file)
    assert {name: len(subset.labels) for name, subset in subsets.items()} == ROWS
    assert subsets["val"].images[0, 0, 0, 0] == 1
    assert subsets["test"].labels.tolist() == [0, 1, 2, 3, 4]


def test_it_is_a_table_of_images_and_classes(file: Path) -> None:
    table = read_table(file)
    assert [*table.columns] == ["image", "class"]
    assert len(table) == 23
    assert table["image"][0].shape == (8, 8, 3)
    tested = read_table(file, Reading(sheet="test"))
    assert tested["class"].tolist() == [0, 1, 2, 3, 4]
    assert tested["image"][0][0, 0, 0] == 2
    with pytest.raises(ValueError, match=r"one of train, val, test; got 'valid'"):
        medmnist_table(file, "valid")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"train_labels": np.zeros((12, 14), np.uint8)}, r"one whole number .*\(12, 14\)"),
        ({"val_labels": np.zeros((6, 1))}, "val_labels is .* of float64"),
        ({"test_images": np.zeros((5, 8, 8, 8, 3), np.uint8)}, "flat images"),
        ({"train_images": np.zeros((12, 8, 8))}, "whole numbers 0..255; train_images is .*float64"),
        ({"train_labels": np.array([{}] * 12, dtype=object)}, "Python objects, which are not read"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, changed, message: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays(**changed))
    with pytest.raises(ValueError, match=message):
        read_medmnist(tmp_path / "a.npz")


def test_other_archives_and_damage_are_named(tmp_path: Path, file: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match=r"other\.npz has no train_images; MedMNIST's files hold"):
        read_medmnist(tmp_path / "other.npz")
    (tmp_path / "cut.npz").write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"cut.npz is not a readable .npz file"):
        read_medmnist(tmp_path / "cut.npz")
    (tmp_path / "text.npz").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"text.npz is not a readable .npz file"):
        read_table(tmp_path / "text.npz")
    with pytest.raises(ValueError, match="there is no file"):
        read_medmnist(tmp_path / "none.npz")


def test_an_array_that_claims_more_than_it_holds_takes_no_memory(tmp_path: Path, file) -> None:
    header = io.BytesIO()
    shape = {"descr": "|u1", "fortran_order": False, "shape": (10**9, 1000, 1000, 3)}
    np.lib.format.write_array_header_2_0(header, shape)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(tmp_path / "big.npz", "w") as new:
        for name in old.namelist():
            is_forged = name == "train_images.npy"
            new.writestr(name, header.getvalue() if is_forged else old.read(name))
    with pytest.raises(
        ValueError, match=r"is damaged: train_images\.npy says that it has 3,000,000"
    ):
        read_medmnist(tmp_path / "big.npz")
