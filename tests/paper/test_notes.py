"""Under each table stands what its printed figures are really of."""

from pathlib import Path

import pytest

from echelon.paper import notes
from echelon.paper.figures import published_runs
from echelon.paper.tables import paper_tables

PAGE = Path(__file__).parents[2] / "docs" / "reproduction.md"


@pytest.mark.parametrize(
    ("table", "note"),
    [
        ("main", notes.SWAPPED), ("main", notes.PERSONS), ("main", notes.EPOCHS),
        ("seeds", notes.COPIED_ROW), ("seeds", notes.SWAPPED),
        ("ablation", notes.ABLATION_SUBSETS), ("ablation", notes.ABLATION_AES),
        ("hyperparameters", notes.HYPERPARAMETERS_AES), ("aes", notes.VGG16),
        ("aes", notes.AES_LOGS), ("text", notes.SHUFFLED_RANKS), ("text", notes.TEXT_DIVISIONS),
    ],
)  # fmt: skip
def test_a_note_stands_under_its_table_and_on_the_page(table: str, note: str) -> None:
    made = paper_tables([])[table]
    assert note in made.notes
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {made.title}\n")[1].split("\n## ")[0]
    assert note in section


@pytest.mark.parametrize(("dataset", "rows"), [("morph2", 1815), ("afad", 2457)])
def test_logged_accuracies_fit_the_subsets_that_were_meant_for_validation(dataset, rows) -> None:
    """What the note on the swap says, from the logs: an accuracy is a multiple of 1 / n."""
    texts = [
        run["accuracy_percent"] for run in published_runs()
        if run["dataset"] == dataset and run["method"] in ("ce", "ornn", "coral", "corn")
    ]  # fmt: skip
    assert len(texts) == 20
    for text in texts:  # printed in percent with two decimals
        percent = float(text)
        nearest = round(percent / 100 * rows) / rows * 100
        assert abs(nearest - percent) < 0.0051, text


def test_the_ablation_on_aes_is_at_chance_for_three_classes() -> None:
    shares = [
        float(run["accuracy_percent"]) for run in published_runs()
        if (run["dataset"], run["method"], run["category"]) == ("aes", "corn_without_subsets", "")
    ]  # fmt: skip
    assert len(shares) == 5
    assert all(33 <= share <= 37 for share in shares)
