"""The pictures of the boards: what is kept, what a difference is, and what they are drawn with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("PIL", reason="pictures are compared with pillow")

from PIL import Image, ImageChops, ImageDraw

from tests import pictures
from tests.pictures import KEPT, SHOTS, Difference

ROOT = Path(__file__).parents[1]
FOLDERS = [ROOT / "dashboards" / "pictures", ROOT / "dashboards" / "viewer"]
PANELS = {"Lines": (0, 0, 300, 200), "Words": (300, 0, 600, 200)}


def board(*, line: str = "blue", words: str = "above the floor", moved: int = 0) -> Image.Image:
    """Two panels: a line that rises, and words."""
    picture = Image.new("RGB", (600, 200), (24, 27, 31))
    draw = ImageDraw.Draw(picture)
    draw.line([(20, 180), (280, 20)], fill=line, width=2)
    draw.text((340, 80), words, fill="white", font_size=24)
    return ImageChops.offset(picture, moved, 0)


@pytest.mark.parametrize("moved", [0, 1])
def test_a_board_that_is_drawn_a_point_to_the_side_is_as_kept(moved: int) -> None:
    """Another browser draws text a little otherwise."""
    assert pictures.differences(board(), board(moved=moved), PANELS) == []


@pytest.mark.parametrize(
    ("drawn", "panel"),
    [
        (board(line="red"), "Lines"),
        (board(line="#181b1f"), "Lines"),
        (board(words="under the floor"), "Words"),
        (board(words=""), "Words"),
    ],
    ids=["another colour", "no line", "another word", "no words"],
)
def test_a_panel_that_says_something_else_is_named(drawn: Image.Image, panel: str) -> None:
    """That panel, and no other."""
    assert [one.panel for one in pictures.differences(board(), drawn, PANELS)] == [panel]


def test_a_board_of_another_size_is_not_compared() -> None:
    """Everything would have moved."""
    drawn = board().crop((0, 0, 600, 190))
    found = pictures.differences(board(), drawn, PANELS)
    assert found == [Difference("the board: (600, 200) was kept, (600, 190) is drawn", 1.0)]


def test_a_difference_is_shown_in_red() -> None:
    """On the picture that was drawn, in grey: red is what is not as it was kept, and nothing else."""
    shown = pictures.changed(board(), board(words=""))
    coloured = {colour for _, colour in shown.getcolors(600 * 200) or [] if len(set(colour)) > 1}
    assert coloured == {(255, 0, 0)}
    assert pictures.changed(board(), board()).getpixel((0, 0)) == (27, 27, 27)


def test_every_picture_that_is_looked_at_is_kept_and_no_other() -> None:
    """Five boards dark, one of them light too."""
    assert sorted(path.name for path in KEPT.iterdir()) == sorted(shot.name for shot in SHOTS)
    assert len(SHOTS) == 6


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_lock_names_no_registry_and_pins_what_is_asked_for(folder: Path) -> None:
    """Each version is exact, each package held to its hash; from where it comes is the reader's choice."""
    asked = json.loads((folder / "package.json").read_text("utf-8"))["devDependencies"]
    packages = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    assert packages.pop("")["devDependencies"] == asked
    assert [name for name, version in asked.items() if packages[f"node_modules/{name}"]["version"] != version] == []
    assert [name for name, one in packages.items() if "resolved" in one or "integrity" not in one] == []


def test_what_is_drawn_with_is_free_of_the_agpl() -> None:
    """Of what Grafana publishes, what is under Apache-2.0 or MIT: neither its application nor its Prometheus source."""
    lock = json.loads((FOLDERS[0] / "package-lock.json").read_text("utf-8"))
    licences = {name: str(one.get("license", "")) for name, one in lock["packages"].items() if name}
    assert {licence for name, licence in licences.items() if "@grafana/" in name} == {"Apache-2.0", "MIT"}
    assert [name for name, licence in licences.items() if "GPL" in licence and " OR " not in licence] == []
