"""A page as a tree, as a browser would read it: its tables, its texts, its elements."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, TreeBuilder

VOID = ("meta", "link", "br", "img")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.builder = TreeBuilder()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        self.builder.data(data)


def tree(page: str) -> Element:
    """The root element. Raises AssertionError where an element is not closed, or another one is."""
    reader = _Reader()
    reader.feed(page.removeprefix("<!doctype html>").strip())
    reader.close()
    return reader.builder.close()


def text(element: Element) -> str:
    """Everything that is said in an element."""
    return "".join(element.itertext())


def tables(root: Element) -> dict[str, list[list[str]]]:
    """The tables by their captions: rows of cells, the head first."""
    return {text(caption): list(_rows(table)) for table in root.iter("table") for caption in table.iter("caption")}


def _rows(table: Element) -> Iterator[list[str]]:
    return ([text(cell) for cell in row] for row in table.iter("tr"))


def classed(root: Element, *names: str) -> list[Element]:
    """The elements that have all of these classes."""
    return [one for one in root.iter() if set(names) <= set(one.get("class", "").split())]
