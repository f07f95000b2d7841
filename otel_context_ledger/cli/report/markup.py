"""HTML and SVG made of elements, in which every text is escaped: what a ledger line says can never become markup.

What stands on the page is the business of others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from otel_context_ledger.cli.printing import plain

VOID = frozenset({"meta", "link"})


@dataclass(frozen=True, slots=True)
class Markup:
    """Markup that is complete and escaped; only `element` and `joined` make it, and `trusted` of texts of ours."""

    text: str


Content: TypeAlias = "str | Markup | Iterable[str | Markup]"
Attribute: TypeAlias = "str | float | bool | None"
EMPTY = Markup("")


def element(name: str, /, *content: Content, **attributes: Attribute) -> Markup:
    """One element. `class_` is written `class`, other underscores are hyphens; `None` and `False` leave an attribute
    out, `True` writes its name alone."""
    start = f"{name}{''.join(_attribute(key, value) for key, value in attributes.items())}"
    return Markup(f"<{start}>" if name in VOID else f"<{start}>{joined(content).text}</{name}>")


def joined(content: Iterable[Content]) -> Markup:
    """Several contents one after the other."""
    return Markup("".join(_text(item) for item in content))


def trusted(text: str) -> Markup:
    """A text of ours that is markup, or style, already."""
    return Markup(text)


def number(value: float) -> str:
    """A length of a picture, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def _text(item: Content) -> str:
    if isinstance(item, Markup):
        return item.text
    if isinstance(item, str):
        # Characters that act on a terminal act on a page too: some turn the direction of what follows.
        return escape(plain(item), quote=False)
    return joined(item).text


def _attribute(key: str, value: Attribute) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{escape(plain(value if isinstance(value, str) else number(value)))}"'
