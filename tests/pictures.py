"""Owns the pictures of the boards: as Grafana's own components draw them over the written day, and held to kept ones.

A panel that failed, that has nothing or that is not there is a fault whatever the picture looks like. Two pictures of a
panel differ by the share of what is on them that is elsewhere or of another colour; text that another browser draws a
little otherwise is far from the tolerance, a line, a number or a legend that is missing is over it.

python -m tests.pictures [--renew] [BOARD…]    after `npm run build` in dashboards/pictures; `make pictures` does both
"""

from __future__ import annotations

import argparse
import json
import mimetypes
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops, ImageFilter

from dashboards.history import INCIDENTS, MINUTES, START, STEP
from tests import browser, prometheus
from tests.browser import Tab
from tests.prometheus import Prometheus
from tests.test_day import held

ROOT = Path(__file__).parents[1]
BOARDS = ROOT / "dashboards" / "dist"
KEPT = ROOT / "dashboards" / "pictures" / "kept"
MADE = ROOT / ".cache" / "pictures"
PAGE = MADE / "page"
WIDTH, HEIGHT = 1600, 1000
SCRAPE = STEP
END = START + (MINUTES - 1) * STEP
# Milliseconds, for a machine that has much else to do.
PATIENCE = 300_000
# A picture is asked for until two are alike, so that nothing is caught half drawn.
TRIES = 20
# Of 255: what is no background, and what is another colour.
INK, OTHER = 24, 40
BLUR = 2
# Seen: 0.006 at most with other hinting, contrast and sub-pixels, or a point to the side; a line of seven is 0.016.
TOLERANCE = 0.015
# The upper part of a panel, which is its title, and how much is to be below it at least.
TITLE, LEAST = 40, 50

# Points of each graph that have a colour: what is no line there is grey.
COLOURED = """() => [...document.querySelectorAll('[data-kind=timeseries]')].map((panel) => {
  const canvas = panel.querySelector('canvas');
  if (!canvas) return [panel.dataset.panel, 0];
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let coloured = 0;
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue, opaque] = data.subarray(at, at + 4);
    if (opaque > 60 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1;
  }
  return [panel.dataset.panel, coloured];
})"""

Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Shot:
    """A board in a theme."""

    board: str
    theme: str

    @property
    def name(self) -> str:
        return f"{self.board.removeprefix('context-ledger-')}-{self.theme}.png"


SHOTS = (
    *(Shot(path.stem, "dark") for path in sorted(BOARDS.glob("*.json"))),
    Shot("context-ledger-reuse", "light"),
)


@dataclass(frozen=True, slots=True)
class Taken:
    """A picture, the place of each panel on it by its title, and what is wrong with the page."""

    path: Path
    panels: dict[str, Box]
    faults: list[str]


@dataclass(frozen=True, slots=True)
class Difference:
    """How much of a panel is otherwise than it was kept, from 0 to 1."""

    panel: str
    share: float


def taken(chromium: Any, server: Prometheus, shot: Shot, folder: Path) -> Taken:
    """A board as it is drawn now."""
    board = json.loads((BOARDS / f"{shot.board}.json").read_text("utf-8"))
    expected = [panel for panel in _panels(board) if panel["type"] != "row"]
    asked = {
        "board": board,
        "theme": shot.theme,
        "range": {"from": START, "to": END},
        "scrape": SCRAPE,
    }
    options = {"reduced_motion": "reduce", "timezone_id": "UTC", "locale": "en-US"}
    with browser.tab(chromium, WIDTH, HEIGHT, shot.theme, **options) as tab:
        tab.page.set_default_timeout(PATIENCE)
        tab.page.add_init_script(f"window.asked = {json.dumps(asked)}")
        tab.page.route("**/*", lambda route: _answer(route, server.url))
        tab.open(f"{server.url}/index.html")
        tab.page.wait_for_function(f"window.failed || window.told?.length >= {len(expected)}")
        tab.page.wait_for_load_state("networkidle")
        # Tables draw only what is in sight.
        tab.page.set_viewport_size({"width": WIDTH, "height": tab.page.evaluate("document.body.scrollHeight")})
        path = _still(tab, folder / shot.name)
        places = _places(tab)
        return Taken(path, places, [*_faults(tab, expected), *_blanks(tab, path, places, expected)])


def differences(kept: Image.Image, drawn: Image.Image, panels: dict[str, Box]) -> list[Difference]:
    """The panels that differ by more than the tolerance, and the board where it has another size."""
    if kept.size != drawn.size:
        return [Difference(f"the board: {kept.size} was kept, {drawn.size} is drawn", 1.0)]
    shares = [Difference(title, share(kept.crop(box), drawn.crop(box))) for title, box in panels.items()]
    return [one for one in shares if one.share > TOLERANCE]


def share(kept: Image.Image, drawn: Image.Image) -> float:
    """What differs between two pictures of a panel, as a share of what is on either of them."""
    one, other = (picture.convert("RGB").filter(ImageFilter.GaussianBlur(BLUR)) for picture in (kept, drawn))
    ink = max(_count(_ink(picture), INK) for picture in (one, other))
    return min(1.0, _count(ImageChops.difference(one, other), OTHER) / max(1, ink))


def changed(kept: Image.Image, drawn: Image.Image) -> Image.Image:
    """The drawn picture in grey, and red where it is not what was kept."""
    size = (max(kept.width, drawn.width), max(kept.height, drawn.height))
    one, other = (_grown(picture, size) for picture in (kept, drawn))
    mask = _strongest(ImageChops.difference(one, other)).point(lambda level: 255 if level > INK else 0)
    grey = other.convert("L").convert("RGB")
    grey.paste((255, 0, 0), mask=mask)
    return grey


def _grown(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    canvas = Image.new("RGB", size)
    canvas.paste(picture.convert("RGB"))
    return canvas


def _ink(picture: Image.Image) -> Image.Image:
    """How far each point is from the colour that most of the picture has."""
    colours = picture.getcolors(picture.width * picture.height) or [(1, (0, 0, 0))]
    background: Any = max(colours)[1]
    return ImageChops.difference(picture, Image.new("RGB", picture.size, background))


def _strongest(picture: Image.Image) -> Image.Image:
    red, green, blue = picture.split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue)


def _count(picture: Image.Image, above: int) -> int:
    return sum(_strongest(picture).histogram()[above + 1 :])


def _panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


def _answer(route: Any, origin: str) -> None:
    """The page and its files, as if Prometheus had them beside its answers; there is nothing else."""
    url = route.request.url.partition("?")[0]
    path = url.removeprefix(f"{origin}/")
    if path.startswith("api/"):
        route.continue_()
    elif path != url and (PAGE / path).is_file():
        route.fulfill(path=PAGE / path, content_type=mimetypes.guess_type(path)[0] or "application/octet-stream")
    else:
        route.fulfill(status=404)


def _still(tab: Tab, path: Path) -> Path:
    before = b""
    for _ in range(TRIES):
        now = tab.picture(path).read_bytes()
        if now == before:
            return path
        before = now
    raise RuntimeError(f"{path.name} does not come to rest")


def _places(tab: Tab) -> dict[str, Box]:
    script = """() => [...document.querySelectorAll('[data-panel]')].map((panel) => {
      const box = panel.getBoundingClientRect();
      return [panel.dataset.panel, [box.left, box.top + scrollY, box.right, box.bottom + scrollY].map(Math.round)];
    })"""
    return {title: tuple(box) for title, box in tab.page.evaluate(script)}


def _faults(tab: Tab, expected: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What a page that is as it should be says nothing of."""
    if failed := tab.page.evaluate("window.failed"):
        yield f"the page: {failed}"
    told = {one["title"]: one for one in tab.page.evaluate("window.told")}
    for panel in expected:
        state = told.get(panel["title"], {"state": "not drawn", "error": ""})
        if state["state"] != "ok":
            yield f"{panel['title']}: {state['state']} {state['error']}".rstrip()
    yield from (f"console: {text}" for text in tab.errors)


def _blanks(tab: Tab, path: Path, places: dict[str, Box], expected: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Panels with nothing below their title, and graphs without a line, whatever the page thinks of them."""
    lines: dict[str, int] = dict(tab.page.evaluate(COLOURED))
    with Image.open(path) as picture:
        for panel in expected:
            left, top, right, bottom = places.get(panel["title"], (0, 0, 1, TITLE + 1))
            inside = picture.convert("RGB").crop((left, top + TITLE, right, bottom))
            if _count(_ink(inside), INK) < LEAST:
                yield f"{panel['title']}: blank"
            elif panel["type"] == "timeseries" and lines.get(panel["title"], 0) < LEAST:
                yield f"{panel['title']}: no line"


@contextmanager
def _day(folder: Path) -> Iterator[Prometheus]:
    with held(folder, INCIDENTS) as server:
        yield server


def _renew(drawn: Taken, name: str) -> None:
    KEPT.mkdir(exist_ok=True)
    with Image.open(drawn.path) as picture:
        colours = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        colours.save(KEPT / name, optimize=True)


def _compared(drawn: Taken, name: str) -> list[str]:
    """What is otherwise than kept, with the new picture and the difference left beside each other."""
    if not (KEPT / name).exists():
        return ["there is no kept picture"]
    with Image.open(KEPT / name) as kept, Image.open(drawn.path) as now:
        found = differences(kept.convert("RGB"), now.convert("RGB"), drawn.panels)
        if found:
            changed(kept, now).save(MADE / name.replace(".png", "-difference.png"))
    return [f"{one.panel}: {one.share:.0%} of it is otherwise" for one in found]


def main(arguments: Sequence[str]) -> int:
    """0 where every board is as it is kept; 1 where one is not, with what to look at."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures")
    parser.add_argument("--renew", action="store_true", help="keep what is drawn")
    parser.add_argument("board", nargs="*", help="only these, by uid")
    chosen = parser.parse_args(arguments)
    lacking = [name for name in ("prometheus", "promtool") if not prometheus.found(name)]
    if browser.NEEDS or lacking:
        print(f"no pictures are looked at: {browser.NEEDS or 'there is no ' + ' and no '.join(lacking)}")
        return 0
    shots = [shot for shot in SHOTS if not chosen.board or shot.board in chosen.board]
    return 1 if _all(shots, chosen.renew) else 0


def _all(shots: Sequence[Shot], renew: bool) -> int:
    """How many boards are not as they should be."""
    bad = 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(_day(folder))
        chromium = stack.enter_context(browser.browsing())
        for shot in shots:
            drawn = taken(chromium, server, shot, MADE)
            if renew and not drawn.faults:
                _renew(drawn, shot.name)
            said = drawn.faults or _compared(drawn, shot.name)
            bad += bool(said)
            print("\n  ".join([f"{shot.name}: {'as kept' if not said else 'NOT as kept'}", *said]))
    if bad:
        print(f"Look at {MADE.relative_to(ROOT)}/*.png; where that is what is meant: make pictures RENEW=1")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
