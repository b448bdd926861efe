"""The table of images that are freely had."""

from echelon.paper.image_tables import images_table
from echelon.paper.results import Result
from echelon.paper.tables import paper_tables


def made(dataset: str, name: str, backbone: str | None = None) -> Result:
    errors = {"corn": [0.6, 0.7], "cnnpor": [0.8], "constant": [1.0], "linear on encodings": [0.75]}
    runs = [
        {"method": method, "seed": seed, "split": "test", "mae": value, "rmse": value + 0.1}
        for method, values in errors.items()
        for seed, value in enumerate(values)
    ]
    differences = [
        {"first": "corn", "second": "cnnpor", "sentence": "corn is better than cnnpor"},
        {"first": "cnnpor", "second": "constant", "sentence": "not of corn"},
    ]
    experiment = {
        "dataset": dataset, "name": name, "backbone": backbone,
        "accuracy_by_mode": {"corn": [0.5, 0.6]}, "longest_run": {"corn": 41.6},
    }  # fmt: skip
    return Result.of({"experiment": experiment, "runs": runs, "differences": differences})


def test_baselines_stand_first_and_verdicts_of_corn_below() -> None:
    results = [made("retina", "recipe default"), made("knees", "x, lite0, frozen", "lite0")]
    table = images_table(results)
    assert [row[2] for row in table.rows[:4]] == [
        "constant", "linear on encodings", "CORN", "CNNPOR",
    ]  # fmt: skip
    corn = table.rows[2]
    assert corn == [
        "RetinaMNIST", "small ResNet", "CORN", "2", "0.650 ± 0.071", "0.750 ± 0.071",
        "0.550 ± 0.071", "42 s",
    ]  # fmt: skip
    assert table.rows[4][:2] == ["Knees", "lite0, frozen"]
    assert "RetinaMNIST, small ResNet: corn is better than cnnpor." in table.notes
    assert not any("not of corn" in note for note in table.notes)
    assert sum("0.524" in note for note in table.notes) == 1
    assert any("CORN has 0.550 here, over 2 seeds" in note for note in table.notes)
    assert [*paper_tables(results)] == ["images"]


def test_the_seconds_of_the_processor_are_told_where_they_are_known() -> None:
    result = made("retina", "recipe default")
    result.document["experiment"]["longest_run_cpu"] = {"corn": 12.4}
    assert result.longest_run("corn") == "12 s of CPU"
    assert made("retina", "recipe default").longest_run("corn") == "42 s"
    assert result.longest_run("cnnpor") == "-"
