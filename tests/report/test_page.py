"""What the page says and holds, without a browser."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from echelon.evaluation.metrics import shown_metrics
from echelon.report import page_text, write_charts, write_page
from echelon.report.charts import all_charts
from echelon.runs import Comparison, read_runs, write_run
from tests.made_runs import write_made_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_made_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def found(folder) -> Comparison:
    return Comparison.of(read_runs(folder))


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
    for words in (
        "The answer",
        "Coefficients of the linear model",
        "trees &lt;1&gt;",
        "rank-crossings",
        '"seed": ',
    ):
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


def test_the_table_of_methods_is_headed_by_the_titles_of_the_metrics(folder) -> None:
    head = re.search(r"<table[^>]*><thead>(.*?)</thead>", page_text(folder), re.S)[1]
    titles = re.findall(r'<a class="term"[^>]*>(.*?)</a>', head)
    assert titles == ["runs", *(row.title for row in shown_metrics(wide=True))]
    assert titles[1:] == ["MAE", "RMSE", "accuracy", "within 1", "QWK", "RPS"]
