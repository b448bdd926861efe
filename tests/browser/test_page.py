"""The page in a real browser, cut off from any network."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from echelon.report import write_page
from tests.attacks.material import reseal_run
from tests.made_runs import write_made_runs

SCREENSHOTS = Path("build/screenshots")
CHARTS = {
    "methods", "training", "confusion", "class_errors", "reliability", "coverage", "crossings",
}  # fmt: skip
VIEWS = {
    "light": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "tablet": {"viewport": {"width": 768, "height": 1024}},
    "phone": {"viewport": {"width": 360, "height": 780}, "has_touch": True},
}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    runs = write_made_runs(folder / "runs", num_classes=16, rows=2000)
    return write_page(runs, folder / "page.html")


@pytest.fixture(params=sorted(VIEWS))
def opened(request, browser, page_file) -> Iterator[tuple[str, object, list[str]]]:
    """A view of the page, and everything that went wrong in it."""
    context = browser.new_context(offline=True, **VIEWS[request.param])
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith("file:") or wrong.append(asked.url))
    page.goto(page_file.as_uri())
    page.wait_for_selector("body[data-ready=true]", timeout=30_000)
    yield request.param, page, wrong
    context.close()


def test_everything_is_drawn_and_nothing_overflows(opened) -> None:
    name, page, wrong = opened
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
    assert wrong == []
    drawn = page.eval_on_selector_all(
        "[data-chart]",
        """places => places.map(place => {
            const box = place.querySelector("svg").getBoundingClientRect();
            const marks = place.querySelectorAll("svg path, svg rect, svg text").length;
            return [place.dataset.chart, box.width, box.height, marks];
        })""",
    )
    assert {row[0] for row in drawn} == CHARTS
    for chart, width, height, marks in drawn:
        assert width > 200, chart
        assert height > 60, chart
        assert marks > 8, chart
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    too_wide = page.eval_on_selector_all(
        "figure, .explorer, ul, p, h1, h2",
        "all => all.filter(one => one.getBoundingClientRect().right > window.innerWidth + 1)"
        ".map(one => one.outerHTML.slice(0, 80))",
    )
    assert too_wide == []


def test_nothing_serious_for_a_screen_reader(opened) -> None:
    from axe_playwright_python.sync_playwright import Axe

    _, page, _ = opened
    found = Axe().run(page).response["violations"]
    serious = [
        (one["id"], one["nodes"][0]["html"][:100])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_rows_are_chosen_by_mouse_and_by_keyboard(opened) -> None:
    _, page, wrong = opened
    words, rows = page.locator("#row-words"), page.locator("#row-list")
    first = words.inner_text()
    assert "the truth is" in first
    assert page.locator("#row-chart .bar").count() == 16
    rows.focus()
    page.keyboard.press("ArrowDown")
    second = words.inner_text()
    assert second != first
    rows.select_option(index=5)
    third = words.inner_text()
    assert third not in (first, second)
    box = rows.bounding_box()
    page.mouse.click(box["x"] + 40, box["y"] + 12)
    assert words.inner_text() != third
    for order in ("surprise", "uncertainty"):
        before = rows.inner_text()
        page.locator("#row-order").select_option(order)
        assert rows.inner_text() != before
    # the row of the largest error is the first in its order
    page.locator("#row-order").select_option("error")
    texts = page.locator("#row-list option").all_inner_texts()
    gaps = [int(re.search(r"off by (\d+)", text)[1]) for text in texts]
    assert gaps == sorted(gaps, reverse=True)
    assert len(gaps) == 150
    assert wrong == []


def test_dark_and_light_follow_the_reader(browser, page_file) -> None:
    context = browser.new_context(offline=True, color_scheme="light")
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector("body[data-ready=true]")

    def colours() -> tuple[str, str]:
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        label = page.locator("[data-chart=methods] svg text").first.get_attribute("fill")
        return ground, label

    light = colours()
    page.emulate_media(color_scheme="dark")
    label = "document.querySelector('[data-chart=methods] svg text').getAttribute('fill')"
    page.wait_for_function(f"fill => {label} != fill", arg=light[1])
    assert colours()[0] != light[0]
    context.close()


LIKERT = (
    "Strongly disagree", "Disagree", "Neither agree, nor disagree", "Agree", "Strongly agree",
    "Unreasonablylongwordwithoutanyspace",
)  # fmt: skip

# Texts of charts that overlap each other or stand outside of their chart.
COLLISIONS = """places => places.flatMap(place => {
    const texts = [...place.querySelectorAll("svg text")]
        .filter(text => text.textContent.trim() && getComputedStyle(text).opacity != 0)
        .map(text => [text.textContent, text.getBoundingClientRect()]);
    const wrong = texts.filter(([, box]) => box.left < 0 || box.right > window.innerWidth)
        .map(([text]) => `${place.dataset.chart}: ${text} is outside`);
    texts.forEach(([first, a], i) => texts.slice(i + 1).forEach(([second, b]) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && high > 4) wrong.push(`${place.dataset.chart}: ${first} on ${second}`);
    }));
    return wrong;
})"""


@pytest.fixture(scope="module")
def likert_page(tmp_path_factory) -> Path:
    """Long labels, few rows with their columns: a single model."""
    folder = tmp_path_factory.mktemp("likert")
    write_made_runs(folder / "runs", num_classes=6, rows=300, seeds=1, classes=list(LIKERT))
    return write_page(folder / "runs" / "corn-seed0", folder / "page.html")


@pytest.mark.parametrize("view", ["light", "tablet", "phone"])
def test_no_label_is_missing_clipped_or_on_another(browser, likert_page, page_file, view) -> None:
    context = browser.new_context(offline=True, **VIEWS[view])
    page = context.new_page()
    for file, count in ((likert_page, 6), (page_file, 16)):
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-ready=true]", timeout=30_000)
        assert page.eval_on_selector_all("[data-chart]", COLLISIONS) == []
        for axis in page.locator("[data-chart=confusion] .role-axis-label").all()[-2:]:
            assert axis.locator("text").count() == count
    context.close()


def test_on_paper_nothing_is_hidden_and_charts_are_dark_on_white(browser, page_file) -> None:
    context = browser.new_context(
        offline=True, color_scheme="dark", viewport={"width": 700, "height": 900}
    )
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector("body[data-ready=true]", timeout=30_000)
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.evaluate("""() => [...document.querySelectorAll("body *")].filter(one => {
        const look = getComputedStyle(one);
        return one.offsetParent && !one.classList.contains("unseen")
            && (one.scrollWidth > one.clientWidth + 2 || one.scrollHeight > one.clientHeight + 2)
            && ["auto", "scroll"].includes(look.overflowX + "" || look.overflowY);
    }).map(one => one.outerHTML.slice(0, 80))""")
    assert hidden == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator(".printed tbody tr").count() == 12
    assert not page.locator(".explorer").is_visible()
    assert page.locator("details").count() == 0
    label = page.locator("[data-chart=methods] .role-axis-label text").first
    assert label.evaluate("text => getComputedStyle(text).fill") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.pdf(format="A4")) > 20_000
    context.close()


def test_a_term_shows_its_meaning_on_the_spot(browser, page_file) -> None:
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector("body[data-ready=true]", timeout=30_000)
    page.locator("thead a.term", has_text="MAE").first.click()
    assert "by how many classes a prediction misses" in page.locator("#meaning").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("#meaning").is_visible()
    assert page.evaluate("""[...document.querySelectorAll("a.term")]
        .every(term => document.querySelector(term.hash))""")
    context.close()


HOSTILE = (
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    "<svg onload=window.ran=1>",
    "javascript:window.ran=1",
    "\"'><a href=javascript:window.ran=1>x</a>",
    "{{constructor.constructor('window.ran = 1')()}}",
    "datum['constructor']['constructor']('window.ran = 1')()",
    "\u2028window.ran = 1//",
    "]]><script>window.ran = 1</script>",
)


def test_hostile_words_are_shown_and_never_run(browser, tmp_path) -> None:
    """In labels, in the names of methods and data, in details, in texts and in paths of images."""
    words = " ".join(HOSTILE)
    folder = write_made_runs(
        tmp_path / "runs", num_classes=len(HOSTILE), rows=300, seeds=2, classes=list(HOSTILE),
        extra={"details": {words: words, "target": words}, "parameters": {words: words}},
    )  # fmt: skip
    rename_in_runs(folder, words)
    context = browser.new_context(offline=True)
    page = context.new_page()
    wrong: list[str] = []
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith("file:") or wrong.append(asked.url))
    page.goto(write_page(folder, tmp_path / "page.html").as_uri())
    page.wait_for_selector("body[data-ready=true]", timeout=30_000)
    for row in page.query_selector_all("button, summary, [tabindex='0']")[:60]:
        row.hover(timeout=1000, force=True) if row.is_visible() else None
    assert page.evaluate("window.ran") is None
    assert not wrong
    context.close()


def rename_in_runs(folder: Path, words: str) -> None:
    """Let the data and one method be called so, and give every row a text and an image."""
    for run in sorted(path for path in folder.iterdir() if path.is_dir()):
        config = json.loads((run / "config.json").read_text())
        config["data"] = words
        if config["method"] == "ornn":
            config["method"] = words
        (run / "config.json").write_text(json.dumps(config))
        with np.load(run / "predictions.npz") as stored:
            arrays = dict(stored)
        arrays["text"] = arrays["image"] = np.full(len(arrays["truth"]), words)
        arrays["cell_rows"] = np.arange(len(arrays["truth"]))
        arrays["cell_names"] = np.array([words, "</dt><script>window.ran = 1</script>"])
        arrays["cells"] = np.full((len(arrays["truth"]), 2), words)
        np.savez(run / "predictions.npz", **arrays)
        reseal_run(run)
