"""What the page says and holds, without a browser."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echelon.report import Comparison, write_charts, write_page
from echelon.report.charts import all_charts, coverage_table
from echelon.report.content import _beside_the_floor
from echelon.runs import read_runs, write_run
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_made_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def found(folder) -> Comparison:
    return Comparison.of(read_runs(folder))


def test_floor_and_baselines_first_then_the_best(found) -> None:
    assert list(found.runs)[:2] == ["best possible", "constant"]
    errors = [found.mean(name, "mae") for name in found.methods]
    assert set(found.methods) == {"corn", "ornn", "ce"}
    assert errors == sorted(errors)
    assert found.best == found.methods[0]


def test_every_two_methods_are_compared_and_the_best_with_the_baseline(found) -> None:
    pairs = {frozenset((one.first, one.second)) for one in found.differences}
    assert len(found.differences) == len(pairs) == 4
    assert frozenset((found.best, "constant")) in pairs
    assert not any("best possible" in pair for pair in pairs)


def test_the_answer_comes_in_words(found) -> None:
    text = " ".join(found.answer())
    assert f"Of 3 methods, {found.best} has the lowest mean absolute error on 400" in text
    assert "The constant baseline misses by" in text
    assert "The best possible predictor misses by" in text


def test_an_error_below_the_best_possible_is_called_luck() -> None:
    assert _beside_the_floor("corn", 0.55, 0.5).endswith("corn is 10.0% above that.")
    assert "is luck" in _beside_the_floor("corn", 0.519, 0.537)
    assert "-" not in _beside_the_floor("corn", 0.519, 0.537)
    assert _beside_the_floor("corn", 0.1, 0.0).endswith("corn is above that.")


def test_the_table_says_what_its_plus_and_minus_are(found) -> None:
    assert found.text(["mae"]).endswith("± their standard deviation)")
    assert "±" not in " ".join(found.sentences())
    assert "(standard error " in found.sentences()[0]


def test_the_document_has_the_key_mae_in_runs_alone(found) -> None:
    document = found.document()
    json.dumps(document, allow_nan=False)
    assert all("mae" in run and run["split"] == "test" for run in document["runs"])
    assert len(document["runs"]) == 11
    rest = {name: value for name, value in document.items() if name != "runs"}

    def keys(value) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {k for one in value.values() for k in keys(one)}
        if isinstance(value, list):
            return {k for one in value for k in keys(one)}
        return set()

    assert "mae" not in keys(rest)


def test_the_page_is_alone_and_small(folder) -> None:
    path = write_page(folder)
    assert path == folder / "report.html"
    text = path.read_text()
    assert len(text.encode()) < 2_500_000
    addresses = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text))
    assert {one.split("//")[1] for one in addresses} <= {"www.w3.org"}  # names of XML, not places
    without_scripts = re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(?:link|img|iframe)|src=|url\(", without_scripts)
    assert not re.search(r"<script[^>]+src", text)
    assert not re.search(r"@@[A-Z]", text)
    for words in ("The answer", "Coefficients of the linear model", "rank-crossings", '"seed": '):
        assert words in text or words.replace('"', "&quot;") in text
    assert not list(folder.glob(".*partial"))


def test_labels_cannot_break_the_page(tmp_path) -> None:
    hostile = ["</script><script>alert(1)</script>", "<b>", '"', "'", "&amp;", "\u2028"]
    folder = write_made_runs(tmp_path / "runs", classes=hostile, seeds=1, rows=60)
    text = write_page(folder, tmp_path / "page.html").read_text()
    assert "<script>alert(1)" not in text
    assert "<b>" not in text


@pytest.mark.parametrize("image", ["svg", "png"])
def test_every_chart_as_an_image(folder, tmp_path, image) -> None:
    paths = write_charts(folder, tmp_path / "figures", image)
    assert {path.stem for path in paths} == {
        "methods", "training", "confusion", "class_errors", "reliability", "coverage", "crossings",
    }  # fmt: skip
    assert all(path.stat().st_size > 2000 for path in paths)


def test_charts_are_altair_objects_with_words(found) -> None:
    import altair

    for one in all_charts(found).values():
        assert isinstance(one.chart, (altair.TopLevelMixin,))
        assert len(one.description) > 40


def test_coverage_uses_the_rows_that_were_kept(folder, found, tmp_path) -> None:
    table, source = coverage_table(found)
    assert "one half of the test rows" in source
    assert (np.diff(table["width"]) >= 0).all()
    run = found.main_run
    arrays = {**run.predictions, "conformal_scores": np.linspace(0.01, 0.5, 500)}
    write_run(tmp_path / "run", replace(run, predictions=arrays))
    table, source = coverage_table(Comparison.of(read_runs(tmp_path / "run")))
    assert "that the fit kept" in source


def test_one_run_with_few_rows_makes_a_page(tmp_path) -> None:
    folder = write_made_runs(tmp_path / "runs", rows=5, num_classes=2, seeds=1)
    found = Comparison.of(read_runs(folder / "corn-seed0"))
    assert "misses by" in found.answer()[0]
    assert "Training" in write_page(folder / "corn-seed0", tmp_path / "p.html").read_text()
    assert "one seed cannot tell" in " ".join(Comparison.of(read_runs(folder)).sentences())


def test_rows_show_their_texts_and_images(folder, found, tmp_path) -> None:
    run = found.main_run
    count = len(run.predictions["truth"])
    texts = np.array([f"review {i} </script><b>" for i in range(count)])
    pixels = np.zeros((count, 8, 8), dtype=np.uint8)
    arrays = {**run.predictions, "text": texts, "image": pixels}
    write_run(tmp_path / "arrays", replace(run, predictions=arrays))
    page = write_page(tmp_path / "arrays", tmp_path / "page.html").read_text()
    rows = json.loads(
        re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)[1]
    )["rows"]
    assert rows["text"][0] == texts[rows["number"][0]]
    assert rows["image"][0].startswith("data:image/jpeg;base64,")
    assert "</script><b>" not in page
    arrays = {**run.predictions, "image": np.array([str(tmp_path / "gone.png")] * count)}
    write_run(tmp_path / "paths", replace(run, predictions=arrays))
    page = write_page(tmp_path / "paths", tmp_path / "page2.html").read_text()
    assert "data:image/jpeg" not in page


def test_several_divisions_are_compared_by_division(tmp_path) -> None:
    folders = [
        write_made_runs(tmp_path / str(split), rows=60 + split, seeds=2, extra={"split": split})
        for split in range(3)
    ]
    runs = [run for folder in folders for run in read_runs(folder)]
    found = Comparison.of(runs)
    assert found.splits == [0, 1, 2]
    assert "60 test rows in each of 3 divisions" in found.answer()[0]
    one = found.differences[0]
    by_hand = np.array(
        [
            np.mean([r.metrics["mae"] for r in found.runs[one.first] if r.config.split == s])
            - np.mean([r.metrics["mae"] for r in found.runs[one.second] if r.config.split == s])
            for s in range(3)
        ]
    )
    assert one.mean == pytest.approx(by_hand.mean())
    share = 60 / 1060
    assert one.se == pytest.approx(np.sqrt(by_hand.var(ddof=1) * (1 / 3 + share / (1 - share))))
    left = [r for r in runs if not (r.config.method == "ce" and r.config.split == 2)]
    with pytest.raises(ValueError, match="has not finished on every division"):
        _ = Comparison.of(left).differences


def test_what_is_wrong_is_said(folder, tmp_path) -> None:
    with pytest.raises(ValueError, match="has no finished run"):
        write_page(tmp_path)
    with pytest.raises(ValueError, match="only baselines have finished"):
        write_page(folder / "constant", tmp_path / "page.html")
    with pytest.raises(ValueError, match="does not exist"):
        write_page(folder, tmp_path / "no" / "page.html")
    with pytest.raises(ValueError, match="image must be one of"):
        write_charts(folder, tmp_path, "gif")
    other = write_made_runs(tmp_path / "other", rows=50, seeds=1)
    with pytest.raises(ValueError, match="not tested on the same rows"):
        Comparison.of([*read_runs(folder), *read_runs(other)])


def test_a_mixture_of_settings_is_refused_with_the_difference(tmp_path) -> None:
    first = write_made_runs(tmp_path / "a", rows=60, seeds=1, extra={"parameters": {"recipe": "x"}})
    other = write_made_runs(tmp_path / "b", rows=60, seeds=2, extra={"parameters": {"recipe": "y"}})
    runs = [one for one in read_runs(other) if one.config.seed == 1]
    with pytest.raises(ValueError, match=r"parameters\.recipe = 'x' and 'y'; report them apart"):
        Comparison.of([*read_runs(first), *runs])
    with pytest.raises(ValueError, match="is there twice"):
        Comparison.of([*read_runs(first), *read_runs(first)])


def test_a_page_of_a_thousand_classes_shows_groups_of_them(tmp_path) -> None:
    folder = write_made_runs(tmp_path / "runs", rows=600, num_classes=1000, seeds=1)
    found = Comparison.of(read_runs(folder))
    charts = all_charts(found)
    for name in ("confusion", "class_errors"):
        assert "1,000 classes are more than the 30" in charts[name].description
    assert len(charts["confusion"].chart.data) == 900
    assert sum(charts["confusion"].chart.data["rows"]) == 600
    frame = charts["class_errors"].chart.data
    weighted = (frame["MAE"] * frame["rows"]).sum() / 600
    assert weighted == pytest.approx(found.main_run.metrics["mae"])
    page = write_page(folder)
    assert page.stat().st_size < 3_000_000
    data = json.loads(
        re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.S)[1]
    )
    assert {len(row) for row in data["rows"]["probabilities"]} == {30}
    assert (len(data["groups"]), len(data["classes"])) == (30, 1000)
    np.testing.assert_allclose(np.sum(data["rows"]["probabilities"], axis=1), 1, atol=5e-3)
    assert data["groups"][0] == "0 to 33"
    assert data["group"][33:35] == [0, 1]


def test_rows_have_the_numbers_of_their_file(folder, found, tmp_path) -> None:
    run = found.main_run
    numbers = 7 * np.arange(len(run.predictions["truth"])) + 3
    write_run(tmp_path / "run", replace(run, predictions={**run.predictions, "row": numbers}))
    page = write_page(tmp_path / "run", tmp_path / "page.html").read_text()
    shown = json.loads(
        re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)[1]
    )["rows"]["number"]
    assert set(shown) <= set(numbers.tolist())
    assert "counted from 0 without the header" in page


def test_runs_without_an_error_or_rows_are_refused(found) -> None:
    run = found.main_run
    with pytest.raises(ValueError, match="no mae among its metrics"):
        Comparison.of([replace(run, metrics={"mae": None})])
    empty = {name: array[:0] for name, array in run.predictions.items()}
    with pytest.raises(ValueError, match="tested on no rows"):
        Comparison.of([replace(run, predictions=empty)])
