"""The site: it is built strictly, holds what it should, and asks nobody else for anything."""

import re
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.reference_names import public_names

CONFIG = ROOT / "mkdocs.yml"


def build_site(folder: Path) -> Path:
    """Build the site into a folder; every warning of the build is an error."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(CONFIG), site_dir=str(folder))
    assert config.strict
    config.plugins.on_startup(command="build", dirty=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that build it
        build(config)
    config.plugins.on_shutdown()
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    kept = list(sys.path)
    try:
        return build_site(tmp_path_factory.mktemp("site"))
    finally:
        sys.path[:] = kept


class Addresses(HTMLParser):
    """What a page loads, and the places in it that can be linked to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.linked: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if "src" in given:
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loaded.append(given["href"])
        if tag == "a" and "href" in given:
            self.linked.append(given["href"])


def test_nothing_is_loaded_from_elsewhere_and_every_link_leads_somewhere(site: Path) -> None:
    pages = {page: Addresses(page) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 45
    for page, addresses in pages.items():
        for address in addresses.loaded:
            assert not re.match(r"\w+:|//", address), f"{page.name} loads {address}"
            assert (page.parent / address.partition("?")[0]).exists(), f"{page.name}: {address}"
        for address in addresses.linked:
            path, _, place = address.partition("#")
            if re.match(r"\w+:", path):
                assert path.startswith("https://"), f"{page.name} links to {path}"
                continue
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            assert target in pages, f"{page.name} links to {address}"
            if place:
                assert place in pages[target].places, f"{page.name} links to {address}"


def test_every_public_name_has_a_place_in_the_reference(site: Path) -> None:
    places = {
        place for page in (site / "reference").glob("*.html") for place in Addresses(page).places
    }
    assert sorted(set(public_names()) - places) == []


def test_docstrings_are_rendered(site: Path) -> None:
    """Roles are links, types are words, and choices are no defaults."""
    text = (site / "reference" / "models.html").read_text(encoding="utf-8")
    assert ":class:" not in text
    assert ":meth:" not in text
    decisions = re.findall(r"<b><code>decision</code></b>(.*?)</li>", text, re.DOTALL)
    spelled = [words for words in decisions if "array of shape (K, K)</code>" in words]
    assert spelled
    for words in spelled:
        assert re.search(r"default:\s*<code>(<span[^>]*>)?None", words)


def test_examples_and_terms_before_the_sections_of_a_docstring_are_rendered(site: Path) -> None:
    """Markdown takes ">>>" for quotes in quotes, and terms with their meaning for a paragraph."""
    for page in (site / "reference").glob("*.html"):
        assert "<blockquote>" not in page.read_text(encoding="utf-8"), page.name
    package = (site / "reference" / "index.html").read_text(encoding="utf-8")
    assert "<li><strong>RankCurve</strong>" in package


def test_what_is_private_is_not_in_the_reference(site: Path) -> None:
    for page in (site / "reference").glob("*.html"):
        shown = [place for place in Addresses(page).places if place.startswith("echelon.")]
        assert [place for place in shown if re.search(r"\._", place)] == [], page.name


def test_examples_and_changelog_are_shown(site: Path) -> None:
    examples = (site / "examples.html").read_text(encoding="utf-8")
    for program in (ROOT / "examples").glob("*.py"):
        assert f"examples/{program.name}" in examples
    assert "0.1.0" in (site / "changelog.html").read_text(encoding="utf-8")
