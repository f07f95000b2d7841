"""How each kind of vector is run: from its plain JSON input to plain JSON that can be compared with `want`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from otel_context_ledger import accounts, canonical, line, spelling, surfaces, thresholds
from otel_context_ledger import model as m
from otel_context_ledger.checking import Pillars
from otel_context_ledger.cli import diagnose, show, tasks
from otel_context_ledger.cli.calls import Book, Call
from otel_context_ledger.cli.symptoms import SYMPTOMS
from otel_context_ledger.correctness import accesses, advice, constraints, reads, wording
from otel_context_ledger.correctness.examination import Examiner, World
from otel_context_ledger.correctness.looks import INSIDE, Looks, Shelved
from otel_context_ledger.correctness.manifest import MISSING, Making, Manifests
from otel_context_ledger.correctness.tools import contracts, definitions, schemas
from otel_context_ledger.correctness.tools.check import Tools
from otel_context_ledger.correctness.tools.registry import Registry
from otel_context_ledger.cost import Card, Prices, price
from otel_context_ledger.ledger import Ledger
from otel_context_ledger.names import named
from otel_context_ledger.outcomes import EVIDENCE, decide
from otel_context_ledger.reuse import locator, volatility
from otel_context_ledger.reuse.segments import Memo, Outline, cut
from otel_context_ledger.surfaces import facts
from otel_context_ledger.surfaces.events import mapping
from tests import compaction_vectors

HOSTS = {
    "openai": ("api.openai.com", "/v1"),
    "kimi_open_platform": ("api.moonshot.ai", "/v1"),
    "kimi_code": ("api.kimi.com", "/coding/v1"),
    "anthropic": ("api.anthropic.com", "/v1"),
    "deepseek": ("api.deepseek.com", ""),
    "openrouter": ("openrouter.ai", "/api/v1"),
    "gemini": ("generativelanguage.googleapis.com", "/v1beta/openai"),
    "unknown": ("gateway.example", "/v1"),
}
PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
LORE = facts.load()


def pruned(value: Any, want: Any) -> Any:
    """The parts of a value that a vector speaks of, so that what it leaves open is not compared."""
    if isinstance(want, Mapping) and isinstance(value, Mapping):
        return {key: pruned(value.get(key), want[key]) for key in want}
    if isinstance(want, list) and isinstance(value, (list, tuple)) and len(want) == len(value):
        return [pruned(item, part) for item, part in zip(value, want, strict=True)]
    return list(value) if isinstance(value, tuple) else value


def find(
    surface: str, api: str = "chat", body: Mapping[str, Any] | None = None, lore: facts.Lore = LORE
) -> surfaces.Surface:
    """The surface of a call to the provider's own host, or to a gateway that is named as it."""
    host, base = HOSTS.get(surface, HOSTS["unknown"])
    named = {} if surface in HOSTS else {host: surface}
    found = surfaces.find(host, base + PATHS[api], body or {"messages": []}, lore, named)
    assert found is not None
    return found


def run_canonical(given: Mapping[str, Any], want: Any) -> Any:
    """A JSON value → its canonical text and digest."""
    raw = canonical.canonical(given["value"])
    key = canonical.key_of(given["key"]) if "key" in given else None
    return {"canonical": raw.decode(), "digest": canonical.written(canonical.digest(raw), key)}


def run_spelling(given: Mapping[str, Any], want: Any) -> Any:
    """A text of somebody else and what it stands for → how it leaves."""
    spell: dict[str, Callable[[str], str | None]] = {
        "name": spelling.name,
        "model": spelling.model,
        "word": spelling.word,
        "session": lambda text: spelling.session(text, canonical.written),
    }
    return {"spelled": spell[given["as"]](given["text"])}


def run_segments(given: Mapping[str, Any], want: Any) -> Any:
    """A request body → its header segments, message digests and prefix chain; with `other`, which segments of the two
    bodies have the same canonical digest and which the same digest as sent."""
    outline = outlined(given, given["body"])
    segments = [*outline.header, *map(outline.message, range(len(outline.messages)))]
    spelled = [locator.spell(at, size, canonical.written(link)) for at, size, link in locator.locate(outline)]
    rows = [[s.kind, s.index, s.name, s.size, canonical.written(s.digest)] for s in segments]
    found: dict[str, Any] = {"segments": rows, "root": canonical.written(outline.root), "locator": spelled}
    if "other" in given:
        beside = outlined(given, given["other"])
        pairs = list(zip(segments, [*beside.header, *map(beside.message, range(len(beside.messages)))], strict=True))
        found["same"] = [a.digest == b.digest for a, b in pairs]
        found["same_wire"] = [a.wire == b.wire for a, b in pairs]
    return pruned(found, want)


def outlined(given: Mapping[str, Any], body: Mapping[str, Any]) -> Outline:
    """The outline of a body; `count` stands for so many numbered user messages."""
    if "count" in given:
        body = {**body, "messages": [{"role": "user", "content": f"message {n}"} for n in range(given["count"])]}
    surface = find(given["surface"], given.get("api", "chat"), body)
    return cut(surface.read_request(body), surface.unrendered, Memo())


def run_volatility(given: Mapping[str, Any], want: Any) -> Any:
    """Two texts → the volatile difference between them, or null."""
    found = volatility.compare(given["old"], given["new"])
    return pruned(asdict(found), want) if found else None


def run_surfaces(given: Mapping[str, Any], want: Any) -> Any:
    """A body, or the events of a stream, in a surface's dialect → request, response and cost; with both, whether the
    stream gives `same` as the plain answer. A `host` and `path` alone → the surface that they name."""
    if "host" in given:
        place = surfaces.find(given["host"], given["path"], given.get("body", {}), LORE, given.get("named"))
        return pruned({"surface": place and place.name, "api": place and place.api}, want)
    surface = find(given["surface"], given.get("api", "chat"))
    found: dict[str, Any] = {}
    if "request" in given:
        found["request"] = asdict(surface.read_request(given["request"]))
    answers = [surface.read_response(mapping(body)) for body in bodies(surface, given)]
    if "events" in given:
        found["channels"] = [surface.channel(event) for event in given["events"]]
        found["same"] = len({replace(a, usage=replace(a.usage, source="")) for a in answers}) == 1
    for response in answers[:1]:
        found |= {"response": asdict(response), "input": response.usage.input, "missed": response.usage.missed}
        cost = price(response.usage, card_of(given, surface, response), None, surface.facts.unit)
        found["cost"] = rounded(asdict(cost))
    return pruned(found, want)


def bodies(surface: surfaces.Surface, given: Mapping[str, Any]) -> Iterator[Any]:
    """The stream folded as the call's observer folds it, then the plain answer."""
    if "events" in given:
        kept = [event for n, event in enumerate(given["events"]) if n == 0 or surface.keep(event)]
        yield surface.fold(kept) if kept else {}
    if "response" in given:
        yield given["response"]


def card_of(given: Mapping[str, Any], surface: surfaces.Surface, response: m.Response) -> Card | None:
    """The vector's own rates (`prices`, or `card` with tiers as (prompt tokens, rate) pairs), else the price list."""
    if "card" in given:
        return Card({name: tuple(map(tuple, steps)) for name, steps in given["card"].items()})
    return Prices(given.get("prices")).card(surface.facts.price, response.model, 1_780_000_000.0)


def rounded(value: Any) -> Any:
    """Money to a millionth of a dollar."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return {key: rounded(item) for key, item in value.items()} if isinstance(value, dict) else value


def run_lineage(given: Mapping[str, Any], want: Any) -> Any:
    """A sequence of calls → the entry of each, as it would stand in the ledger file."""
    lore = facts.load(given.get("facts"))
    registry = Registry()
    declared, bad = contracts.declared(given.get("manifest", {}))
    assert not bad
    tools = Tools(registry, declared, given.get("names", False))
    outside = Outside(given)
    moved = partial(manifests(given).moved, paths=given.get("paths", False))
    pillars = Pillars(tools, outside.examiner, moved=moved)
    ledger = Ledger(lore, "test", prices=given.get("prices"), pillars=pillars)
    lines: list[Mapping[str, Any]] = []
    open_calls: list[tuple[Any, ...]] = []
    for number, call in enumerate(expanded(given)):
        if call.get("restart"):
            ledger = Ledger(lore, "test", prices=given.get("prices"))
            ledger.restore(lines)
        tell(registry, call)
        outside.look(call)
        surface = find(call["surface"], call.get("api", "chat"), call["body"], lore)
        names = {name: call.get(name) for name in ("session", "task", "attempt", "parent")}
        around = m.Surroundings(f"e{number}", float(call["at"]), **names, repo_snapshot=call.get("repository"))
        draft = ledger.open(surface, "host", surface.read_request(call["body"]), around)
        open_calls.append((ledger, surface, call, draft))
        if not call.get("overlaps"):
            outside.look(call.get("meanwhile", {}))
            lines += [closed(*opened) for opened in open_calls]
            open_calls.clear()
    lines += [closed(*opened) for opened in open_calls]
    found = rounded_lines(lines)
    return found if want is None else pruned(found, want)


class Outside:
    """What is on disk while the calls of a vector are made. Each entry of a call's `looks` is a look `at` a time at
    `files`: a text, `null` for none there, where it lies if not in the repository, or a text with the path that is the
    `real` one. `rooted` and `shared_git_dir` say what the repository is, which is in /work/app; without `rooted` nobody
    looks."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        known = Shelved(given.get("rooted"), given.get("shared_git_dir", False))
        self.world = World(files=known if "rooted" in given else None)
        names, bad = accesses.lexicon(given.get("reads"))
        assert not bad
        self.examiner = Examiner(lambda: self.world, reader=reads.Reader(names, lambda: "/work/app"))

    def look(self, call: Mapping[str, Any]) -> None:
        """Takes the looks that come right before a call or, in `meanwhile`, before its answer."""
        for look in call.get("looks", []):
            assert self.world.files is not None
            files = dict(self.world.files.files)
            for path, text in look["files"].items():
                name = accesses.absolute(path, "/work/app") or ""
                told = text if isinstance(text, dict) else {"text": text}
                found = told["text"].encode() if isinstance(told.get("text"), str) else None
                real = accesses.absolute(told.get("real", path), "/work/app")
                looks = files.get(name, Looks(told.get("place", INSIDE), (), real))
                files[name] = looks.after(found, "place" in told, float(look["at"]))
            self.world = replace(self.world, files=replace(self.world.files, files=files))
        self.world = replace(self.world, now=float(call.get("at", self.world.now)))


def manifests(given: Mapping[str, Any]) -> Manifests:
    """What the snapshots of a vector were made of, by their identities: the commit (`head`), git's `records`, each with
    its path and what stands there (`null`: nothing), and the `lockfiles` at the root."""
    found = Manifests()
    for identity, told in given.get("manifests", {}).items():
        making = Making()
        for record, path, content in told["records"]:
            making.note(path.encode(), record.encode(), MISSING if content is None else content.encode())
        for name, content in told["lockfiles"].items():
            making.note_lockfile(name.encode(), content.encode())
        found.keep(identity, making.made(told["head"]))
    return found


def tell(registry: Registry, call: Mapping[str, Any]) -> None:
    """What the program says of its tools right before a call: `listed` by servers, each with its contract, and
    `contracts` by tools."""
    for given in call.get("listed", []):
        found = definitions.listing(given["listing"])
        assert found is not None
        registry.put(found, given.get("server"), contracts.read(given.get("contract", {})), float(call["at"]))
    if "contracts" in call:
        registry.declare({name: contracts.read(table) for name, table in call["contracts"].items()})


def run_tools(given: Mapping[str, Any], want: Any) -> Any:
    """Two schemas → what changed from one to the other; a sequence of calls → the entry of each, or of the ones that
    `of` names, with the advice that is the tools' own."""
    if "calls" in given:
        rows = run_lineage(given, None)
        for row in rows:
            row["checks"]["advice"] = [text for text in row["checks"]["advice"] if not text.startswith(advice.WORDS)]
        chosen = [rows[at] for at in given["of"]] if "of" in given else rows
        found = {"entries": chosen, "advised": sum(bool(row["checks"]["advice"]) for row in rows)}
        return pruned(found, want)
    changes = schemas.compare(given["old"], given["new"])
    level = schemas.worst([change.level for change in changes])
    return pruned({"level": level, "changes": [spelled(change) for change in changes]}, want)


def run_repository(given: Mapping[str, Any], want: Any) -> Any:
    """A sequence of calls, with looks at files between them → the entry of each, or of the ones that `of` names."""
    rows = run_lineage(spelled_out(given), None)
    return pruned([rows[at] for at in given["of"]] if "of" in given else rows, want)


def spelled_out(value: Any) -> Any:
    """A value in which `{"repeat": text, "times": n}` is the text so many times."""
    if isinstance(value, list):
        return [spelled_out(item) for item in value]
    if isinstance(value, dict):
        if value.keys() == {"repeat", "times"}:
            return value["repeat"] * value["times"]
        return {key: spelled_out(item) for key, item in value.items()}
    return value


def spelled(change: schemas.Change) -> list[str]:
    renamed = [change.renamed] if change.renamed else []
    return [change.kind, change.level, ".".join(change.path), *renamed]


def closed(ledger: Ledger, surface: surfaces.Surface, call: Mapping[str, Any], draft: Any) -> Mapping[str, Any]:
    took = float(call.get("took", 1.0))
    failed = call.get("fails")
    response = m.Response() if failed or call.get("response") is None else surface.read_response(call["response"])
    ending = m.Ending("failed", failed) if failed else m.Ending(call.get("end", "complete"))
    entry = ledger.close(draft, response, ending, m.Timing(took), float(call["at"]) + took)
    entry = ledger.settled(entry, draft, response.calls)
    line_: Mapping[str, Any] = orjson.loads(line.write(entry, ledger.trail(draft)))
    return line_


def rounded_lines(lines: Iterable[Mapping[str, Any]]) -> list[Any]:
    return [{group: rounded(value) for group, value in row.items()} for row in lines]


def expanded(given: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The calls of a vector. Each starts from `base` and from the messages of the call named by `after` (an index),
    to which `append` is added; `set` replaces members of the body and `edit` single messages, in that order. One with
    `times` and `every` stands for as many equal calls, so many seconds apart."""
    done: list[dict[str, Any]] = []
    for call in chain.from_iterable(map(repeated, given["calls"])):
        body = dict(given.get("base", {}))
        body |= done[call["after"]]["body"] if "after" in call else {}
        body |= call.get("set", {})
        key = "input" if call.get("api", given.get("api", "chat")) == "responses" else "messages"
        messages = list(body.get(key, []))
        for index, message in call.get("edit", {}).items():
            messages[int(index)] = message
        for start, end, summary in call.get("replace", []):
            messages[start:end] = summary
        body[key] = messages + call.get("append", [])
        usage = call.get("usage")
        full = {"surface": given.get("surface"), "api": given.get("api", "chat"), **call, "body": body}
        if usage is not None or "answer" in call:
            full["response"] = {
                "id": f"r{len(done)}",
                "model": body.get("model"),
                "choices": [],
                "usage": usage,
                **call.get("answer", {}),
            }
        done.append(full)
    return done


def run_totals(given: Mapping[str, Any], want: Any) -> Any:
    """Ledger lines → the totals over them. A line with `times` stands for so many calls with ids of their own."""
    rows = [
        Call({"entry_id": f"e{number}.{n}", **row})
        for number, row in enumerate(given["lines"])
        for n in range(row.get("times", 1))
    ]
    return pruned(rounded(asdict(show.totals(rows))), want)


def run_names(given: Mapping[str, Any], want: Any) -> Any:
    """A value → the name that it stands for, empty for none."""
    return named(given["value"])


def run_tasks(given: Mapping[str, Any], want: Any) -> Any:
    """Calls (`times` of each) by their fields, and what was told of their tasks → what `context-ledger tasks --json`
    says."""
    each = (call for call in given["calls"] for _ in range(call.get("times", 1)))
    calls = [Call({"entry_id": f"e{at}", "started_at": 10.0 * at, "call_end": "complete", **call})
             for at, call in enumerate(each)]  # fmt: skip
    told = [outcome(at, line_) for at, line_ in enumerate(given.get("told", []))]
    books = accounts.settle([tasks.expense(call, LORE.failed) for call in calls], told)
    return pruned(rounded(tasks.document(books)), want)


def outcome(at: int, told: Mapping[str, Any]) -> m.Outcome:
    """A telling: its task, its time, and what it says."""
    flags = {name: told.get(name) for name in EVIDENCE}
    return m.Outcome(
        told.get("id", f"o{at}"), told.get("at", 1e6 + at), told["task"], told.get("attempt"), decide(flags),
        **flags, reason=told.get("reason"),
    )  # fmt: skip


def run_advice(given: Mapping[str, Any], want: Any) -> Any:
    """What is known of the calls of a session, each over the one before → the advice on the last."""
    limits, bad = thresholds.read(given.get("limits", {}))
    assert not bad
    past, facts = advice.NEW, advice.Facts()
    told: dict[str, Any] = {}
    for call in chain.from_iterable([one] * one.get("times", 1) for one in given["calls"]):
        told = {
            **told,
            "compacted": False,
            "changed": (),
            **{k: v for k, v in call.items() if k not in ("times", "grows")},
        }
        told["input"] = told.get("input", 0) + call.get("grows", 0)
        facts = advice.Facts(**{**told, "checks": {name: check_of(one) for name, one in told["checks"].items()}})
        past = advice.after(past, facts, limits)
    return list(advice.advise(facts, past, limits))


def check_of(told: Mapping[str, Any]) -> m.Check:
    """A verdict with its findings."""
    return m.Check(told["verdict"], m.Findings(*(tuple(told.get(k, ())) for k in ("detail", "counts", "evidence"))))


def run_diagnose(given: Mapping[str, Any], want: Any) -> Any:
    """Ledger lines (calls, ten seconds apart and `times` of each; outcomes and compactions), and a symptom → whether it
    is found in them, and its evidence."""
    each = (call for call in given["calls"] for _ in range(call.get("times", 1)))
    base = {"duration": 1.0, **given.get("base", {})}
    calls = tuple(Call({"entry_id": f"e{at}", "started_at": 10.0 * at, **base, **call}) for at, call in enumerate(each))
    told = tuple(Call({"told_at": 1e6 + at, **one}, f"told:{at}") for at, one in enumerate(given.get("told", [])))
    events = tuple(Call(event, f"event:{at}") for at, event in enumerate(given.get("compactions", [])))
    limits, bad = thresholds.read(given.get("limits", {}))
    assert not bad
    book = Book(Path("ledger.jsonl"), calls, outcomes=told, compactions=events)
    case = diagnose.gathered(book, calls, LORE.failed, limits)
    symptom = next(one for one in SYMPTOMS if one.id == given["symptom"])
    return pruned(asdict(symptom.test(case)), want)


def repeated(call: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return ({**call, "at": call["at"] + n * call.get("every", 0)} for n in range(call.get("times", 1)))


def run_compaction(given: Mapping[str, Any], want: Any) -> Any:
    """What happens in a session, an error, or messages → what is told of compactions."""
    return pruned(rounded(compaction_vectors.run(given, LORE.forms.summary_openings)), want)


def run_wordings(given: Mapping[str, Any], want: Any) -> Any:
    """How the shipped validator finds each text to stand to its rule: what all have in common, else all there is."""
    validator = wording.Wording()
    found = [(rule, text, validator.match(constraints.Constraint("C", rule), text)) for rule, text in given["pairs"]]
    told = [{"verdict": match.verdict, "matcher": match.matcher} for _, _, match in found]
    other = [(rule, text, shown) for (rule, text, _), shown in zip(found, told, strict=True) if shown != want]
    return other or want


RUNNERS: Mapping[str, Callable[[Mapping[str, Any], Any], Any]] = {
    "canonical": run_canonical,
    "spelling": run_spelling,
    "segments": run_segments,
    "volatility": run_volatility,
    "surfaces": run_surfaces,
    "lineage": run_lineage,
    "totals": run_totals,
    "names": run_names,
    "tasks": run_tasks,
    "tools": run_tools,
    "compaction": run_compaction,
    "advice": run_advice,
    "diagnose": run_diagnose,
    "repository": run_repository,
    "wordings": run_wordings,
}
