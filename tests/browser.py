"""A headless Chromium for tests of pages: what a page asked for, what it complained about, what is read out of it.

`NEEDS` is the sentence with which a test is skipped where there is no browser or no driver, empty where both are here.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next((found for found in map(shutil.which, NAMES) if found), None)
DRIVER = importlib.util.find_spec("playwright") is not None
NEEDS = "" if PROGRAM and DRIVER else f"a browser test needs {'playwright (pip)' if PROGRAM else 'chromium'}"
needs_browser = pytest.mark.skipif(bool(NEEDS), reason=NEEDS)
# A container gives /dev/shm 64 MB, and root no sandbox; the pages are our own. Text is drawn alike everywhere.
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--font-render-hinting=none", "--force-color-profile=srgb")


@dataclass(frozen=True, slots=True)
class Tab:
    """A page that is open, with the addresses that it asked for and what its console said of errors."""

    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, address: str | Path) -> None:
        """Goes to an address, or to a file."""
        self.page.goto(address.as_uri() if isinstance(address, Path) else address)

    def outside(self, origin: str) -> list[str]:
        """The addresses that were asked for elsewhere than here; what a page carries in itself is not asked for."""
        return [address for address in self.requests if not address.startswith((origin, "data:", "blob:"))]

    def spoken(self, selector: str = "body") -> str:
        """The accessibility tree below an element: one line for each role, with its name."""
        return str(self.page.locator(selector).first.aria_snapshot())

    def picture(self, path: Path) -> Path:
        """The whole page as a PNG file."""
        self.page.screenshot(path=path, full_page=True)
        return path

    def _watch(self) -> None:
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda told: self.errors.append(told.text) if told.type == "error" else None)


@contextmanager
def browsing() -> Iterator[Any]:
    """A running Chromium of Playwright's; `tab` opens pages in it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=PROGRAM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def tab(browser: Any, width: int = 1600, height: int = 1000, theme: str = "dark", **more: Any) -> Iterator[Tab]:
    """A page of its own, without storage or cookies of others; `theme` is dark or light, as the system would ask."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **more)
    try:
        opened = Tab(context.new_page())
        opened._watch()
        yield opened
    finally:
        context.close()
