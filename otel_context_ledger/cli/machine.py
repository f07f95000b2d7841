"""The environment that `doctor` looks at: installed packages, registered plugins, variables; and the form of a check.

Looking imports nothing of what it finds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

OK, WARNING, PROBLEM = "ok", "warning", "problem"
PLUGIN_PREFIX = "opentelemetry_"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: its verdict (ok, warning, problem) and a sentence, with the way out where one is needed."""

    name: str
    verdict: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point: its group and name, and the package that registers it."""

    group: str
    name: str
    package: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A Python environment. `packages` are versions by normalised package name."""

    environ: Mapping[str, str]
    packages: Mapping[str, str]
    plugins: tuple[Plugin, ...]
    python: str
    prefix: str

    def named(self, group: str) -> tuple[Plugin, ...]:
        """The plugins of one group."""
        return tuple(plugin for plugin in self.plugins if plugin.group == group)

    def titled(self, package: str) -> str:
        """A package with its version."""
        return f"{package} {self.packages.get(package, '')}".rstrip()


def here(environ: Mapping[str, str]) -> Machine:
    """The environment that this process runs in."""
    packages: dict[str, str] = {}
    plugins: list[Plugin] = []
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"] if distribution.metadata else None
        # The first of two with one name is the one that imports find.
        if not name or normalised(name) in packages:
            continue
        packages[normalised(name)] = distribution.version
        plugins += [
            Plugin(point.group, point.name, normalised(name))
            for point in distribution.entry_points
            if point.group.startswith(PLUGIN_PREFIX) or point.group == "console_scripts"
        ]
    version = ".".join(map(str, sys.version_info[:3]))
    return Machine(environ, packages, tuple(plugins), version, sys.prefix)


def normalised(package: str) -> str:
    """A package name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", package).lower()


def release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
