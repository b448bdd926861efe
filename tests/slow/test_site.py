"""The site in a real browser, cut off from any network: every page, in every view."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import browser  # noqa: F401 (a fixture)
from tests.test_site import build_site

SCREENSHOTS = Path("build/screenshots/site")
VIEWS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 360, "height": 780}, "has_touch": True, "color_scheme": "light"
    },
    "dark_phone": {
        "viewport": {"width": 360, "height": 780}, "has_touch": True, "color_scheme": "dark"
    },
}  # fmt: skip
# Where a reader who types this wants to go.
SEARCHES = {
    "kappa": "decisions.html",
    "weights": "weights.html",
    "coral-pytorch": "from/coral-pytorch.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(params=sorted(VIEWS))
def opened(request, browser) -> Iterator[tuple[str, object, list[str]]]:  # noqa: F811
    """A view, and everything that goes wrong in it."""
    context = browser.new_context(offline=True, **VIEWS[request.param])
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith("file:") or wrong.append(asked.url))
    yield request.param, page, wrong
    context.close()


def test_every_page_in_every_view(opened, site) -> None:
    """Nothing in the console, no request elsewhere, nothing too wide, nothing serious from axe."""
    from axe_playwright_python.sync_playwright import Axe

    view, page, wrong = opened
    complaints: dict[str, list[str]] = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if name == "404.html":  # its addresses begin at the root of a server
            continue
        page.goto(path.as_uri())
        page.wait_for_load_state()
        saved = SCREENSHOTS / view / f"{name.replace('/', '_')}.png"
        saved.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=saved, full_page=True)
        found = [
            f"{rule['id']}: {rule['nodes'][0]['html'][:160]} ({len(rule['nodes'])})"
            for rule in Axe().run(page, options={"preload": False}).response["violations"]
            if rule["impact"] in ("serious", "critical")
        ]
        if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            found.append("it is wider than the window")
        broken = page.eval_on_selector_all(
            "article img", "all => all.filter(image => !image.naturalWidth).map(image => image.src)"
        )
        found += [f"an image is missing: {address}" for address in broken]
        if found:
            complaints[name] = found
    assert wrong == []
    assert complaints == {}


def test_the_search_finds_the_right_page(opened, site) -> None:
    view, page, wrong = opened
    for words, wanted in SEARCHES.items():
        page.goto((site / "index.html").as_uri())
        if "phone" in view:
            page.click("label[for=__search].md-header__button")
        else:
            page.click("input.md-search__input")
        page.keyboard.type(words)  # the search listens to keys
        page.wait_for_selector(".md-search-result__item > a", timeout=20_000)
        page.wait_for_timeout(300)
        first = page.get_attribute(".md-search-result__item > a", "href") or ""
        assert first.partition("?")[0].endswith(f"/{wanted}"), f"{words}: {first}"
        page.click(".md-search-result__item > a")
        page.wait_for_url(f"**/{wanted}*")
    assert wrong == []


def test_dark_and_light_can_be_chosen(opened, site) -> None:
    view, page, wrong = opened
    page.goto((site / "index.html").as_uri())
    scheme = page.get_attribute("body", "data-md-color-scheme")
    assert scheme == ("slate" if "dark" in view else "default")
    page.click("form[data-md-component=palette] label:not([hidden])")
    assert page.get_attribute("body", "data-md-color-scheme") != scheme
    assert wrong == []
