"""The section on what matters, and the reasons of rows, in a real browser without a network."""

from pathlib import Path

import pytest

from echelon.report import write_page
from echelon.runs import Comparison, add_explanation, read_runs
from tests.made_explanations import made_explanation
from tests.made_runs import write_made_runs

SCREENSHOTS = Path("build/screenshots")
VIEWS = {
    "light": {"viewport": {"width": 1200, "height": 900}},
    "dark": {"viewport": {"width": 1200, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
HOSTILE = (
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    "datum['constructor']['constructor']('window.ran = 1')()\u2028",
    "\"'><svg onload=window.ran=1>",
)


def page_about(folder: Path, names: tuple[str, str, str, str] | None = None) -> Path:
    runs = write_made_runs(folder / "runs", num_classes=6, rows=300, seeds=1)
    best = Comparison.of(read_runs(runs)).best
    document = made_explanation(6, list(range(300)), names=names)
    add_explanation(runs / f"{best}-seed0", document)
    return write_page(runs, folder / "page.html")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    return page_about(tmp_path_factory.mktemp("explained"))


def opened_page(browser, path: Path, **view) -> tuple[object, object, list[str]]:
    context = browser.new_context(offline=True, **view)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith("file:") or wrong.append(asked.url))
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready=true]", timeout=30_000)
    return context, page, wrong


@pytest.mark.parametrize("view", ["dark", "phone"])
def test_the_section_is_drawn_fits_and_can_be_read_aloud(browser, page_file, view: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context, page, wrong = opened_page(browser, page_file, **VIEWS[view])
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.locator("#explanation").screenshot(path=SCREENSHOTS / f"explanation-{view}.png")
    assert wrong == []
    drawn = page.eval_on_selector_all(
        "#explanation [data-chart]",
        """places => places.map(place => {
            const box = place.querySelector("svg").getBoundingClientRect();
            const marks = place.querySelectorAll("svg path, svg rect, svg text").length;
            return [place.dataset.chart, box.width, box.height, marks];
        })""",
    )
    assert [row[0] for row in drawn] == ["importance", "effect_1", "effect_2", "effect_3"]
    for chart, width, height, marks in drawn:
        assert width > 200, chart
        assert height > 60, chart
        assert marks > 8, chart
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    found = Axe().run(page).response["violations"]
    serious = [one["id"] for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []
    context.close()


def test_every_row_of_the_explorer_has_its_reasons(browser, page_file) -> None:
    context, page, wrong = opened_page(browser, page_file, **VIEWS["light"])
    page.locator("nav a", has_text="What matters").click()
    rows, reasons = page.locator("#row-list"), page.locator("#row-reasons li")
    seen = set()
    for place in range(0, 60, 6):
        rows.select_option(index=place)
        said = reasons.all_inner_texts()
        assert any("the chance of" in sentence for sentence in said)
        seen.add(said[0])
    assert len(seen) > 5
    assert wrong == []
    context.close()


def test_hostile_columns_cells_and_words_are_shown_and_never_run(browser, tmp_path) -> None:
    path = page_about(tmp_path, HOSTILE)
    context, page, wrong = opened_page(browser, path, **VIEWS["light"])
    page.locator("#row-list").select_option(index=3)
    assert "<img" in page.locator("#explanation").inner_text()
    assert page.evaluate("window.ran") is None
    assert wrong == []
    context.close()
