"""A real engine for tests and demo: llama.cpp with a tiny generated model, in a process of its own."""

from __future__ import annotations

from tests.engine.server import Engine

__all__ = ["Engine"]
