"""Provider lore: every shipped fact says where it is from and when it was read, and a user's table replaces it."""

from __future__ import annotations

import sys
from datetime import date
from importlib import resources
from typing import Any

import pytest

from otel_context_ledger.surfaces import facts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHIPPED = tomllib.loads(resources.files("otel_context_ledger.surfaces").joinpath("facts.toml").read_text("utf-8"))
# What names a surface, as opposed to what is held to be true of its cache.
NAMES = {"provider", "hosts", "price", "unit", "facts"}
STATED = [
    pytest.param(name, key, fact, id=f"{name}.{key}")
    for name, surface in SHIPPED["surface"].items()
    for key, fact in surface.get("facts", {}).items()
]


@pytest.mark.parametrize(("surface", "key", "fact"), STATED)
def test_fact_has_origin_and_date(surface: str, key: str, fact: dict[str, Any]) -> None:
    """A fact is a value with its source and the day on which that was read, and the loaded facts still say so."""
    assert set(fact) == {"value", "origin", "date"}
    assert len(fact["origin"]) > 10
    assert date(2025, 1, 1) < date.fromisoformat(fact["date"]) < date(2030, 1, 1)
    loaded = facts.load().of(surface)
    assert getattr(loaded, key) == fact["value"]
    assert loaded.origins[key] == f"{fact['origin']} ({fact['date']})"


def test_nothing_is_stated_beside_the_facts() -> None:
    """A surface's own table holds names only: whatever can be wrong stands among the facts, with its origin."""
    assert {key for surface in SHIPPED["surface"].values() for key in surface} <= NAMES


def test_shipped_facts_pass_the_check_of_overrides() -> None:
    """What we ship would be accepted from a user."""
    given = {
        name: {key: fact["value"] for key, fact in surface.get("facts", {}).items()}
        | {key: value for key, value in surface.items() if key != "facts"}
        for name, surface in SHIPPED["surface"].items()
    }
    assert set(facts.load(given).surfaces) == set(SHIPPED["surface"])


def test_forms_of_compaction_are_texts() -> None:
    """The openings by which summaries are known are long enough to be no accident."""
    forms = facts.load().forms
    assert all(len(text) > 20 for text in (*forms.system_openings, *forms.instructions, *forms.summary_openings))


def test_a_system_block_asks_for_a_summary() -> None:
    """Claude Code has such a block behind its own first one; a block that quotes the opening asks for nothing."""
    ask, opening = facts.load().forms.ask, "You are a helpful AI assistant tasked with summarizing conversations."
    assert [ask(["cc_version=2.1", opening], ()), ask([f"Answer like this: {opening}"], ())] == [True, False]


def test_override_replaces() -> None:
    """A user's value stands in the place of ours and says where it is from; what was not named stays."""
    ours = facts.load().of("kimi_code")
    got = facts.load({"kimi_code": {"block": 64, "retention": 60.5, "hosts": ["kimi.example"]}}).of("kimi_code")
    assert (got.block, got.retention, got.hosts) == (64, 60.5, ("kimi.example",))
    assert (got.minimum, got.unit, got.windows) == (ours.minimum, ours.unit, ours.windows)
    assert (got.origins["block"], got.origins["minimum"]) == ("context-ledger.toml", ours.origins["minimum"])


def test_override_of_a_table_replaces_its_entries() -> None:
    """One more model's window takes none of the others away."""
    got = facts.load({"kimi_code": {"windows": {"k3": 500_000, "k4": 2_000_000}}}).of("kimi_code")
    assert (got.window("k3"), got.window("k4"), got.window("k3-256k")) == (500_000, 2_000_000, 262_144)


def test_override_of_one_surface_leaves_the_others() -> None:
    """Facts belong to a surface."""
    assert facts.load({"openai": {"block": 1}}).of("kimi_code") == facts.load().of("kimi_code")


def test_new_surface() -> None:
    """A gateway of the user's own has the facts that the user states, and no others."""
    got = facts.load({"house": {"block": 32, "price": "openai"}}).of("house")
    assert (got.surface, got.block, got.price, got.minimum, got.unit) == ("house", 32, "openai", None, "usd")


def test_unknown_surface_has_no_facts() -> None:
    """What nobody stated is unknown."""
    assert facts.load().of("elsewhere") == facts.Facts("elsewhere")


WRONG: list[tuple[str, object]] = [
    ("block", 0), ("block", -1), ("block", True), ("block", 12.5), ("block", "128"), ("minimum", -1), ("minimum", None),
    ("minimum_previous", 1), ("retention", -5), ("retention", float("nan")), ("retention", float("inf")),
    ("retention", "5m"), ("retention", False), ("write_lag", -0.1), ("markers", "yes"), ("unit", "euro"), ("unit", 1),
    ("provider", ""), ("provider", 3), ("price", []), ("hosts", "api.example"), ("hosts", [1]), ("windows", 4096),
    ("windows", {"m": 0}), ("windows", {"m": "1M"}), ("retentions", {"1h": -1}), ("retentions", ["1h"]), 
    ("retenion", 5),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_wrong_override(key: str, value: object) -> None:
    """A value that cannot be the fact is refused by the name of its table, its key and itself."""
    with pytest.raises(ValueError, match=r"\[facts\.openai\]") as refused:
        facts.load({"openai": {key: value}})
    assert f"{key} = {value!r}" in str(refused.value)


def test_override_that_is_no_table() -> None:
    """A surface's facts are a table."""
    with pytest.raises(ValueError, match=r"\[facts\.openai\] must be a table, got 7"):
        facts.load({"openai": 7})


@pytest.mark.parametrize(("asked", "lifetime"), [(None, 300), ("1h", 3600), ("5m", 300), ("a fortnight", 300)])
def test_lifetime(asked: str | None, lifetime: float) -> None:
    """The lifetime is what the request asked for, where its word is known, else what holds when nothing is asked."""
    assert facts.load().of("anthropic").lifetime(asked) == lifetime


def test_override_reaches_the_lifetime() -> None:
    """An agent whose provider keeps prefixes for longer says so."""
    got = facts.load({"anthropic": {"retention": 900, "retentions": {"1d": 86400}}}).of("anthropic")
    assert (got.lifetime(None), got.lifetime("1d"), got.lifetime("1h")) == (900, 86400, 3600)
