"""A real browser, cut off from any network."""

from collections.abc import Iterator
from pathlib import Path

import pytest

CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    program = next((path for path in CHROMIUM if Path(path).exists()), None)
    if program is None:
        pytest.skip("there is no chromium here; .ci/run installs it")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield opened
        opened.close()
