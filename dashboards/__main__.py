"""Writes what boards and rules are generated into, or with --check says what is not up to date.

python -m dashboards [--check]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

DIST = Path(__file__).parent / "dist"
NEEDED = (3, 11)


def boards() -> Mapping[str, str]:
    """The boards as they are committed, by file name."""
    from . import documents

    return {
        f"{uid}.json": json.dumps(board, indent=1, ensure_ascii=False) + "\n" for uid, board in documents.documents()
    }


def main(arguments: list[str]) -> int:
    """Exit code 0, or 1 where --check found something to write."""
    if sys.version_info < NEEDED:
        print("The boards are not looked at: their generator needs Python 3.11, the rest does not.")
        return 0
    wanted = {DIST / name: text for name, text in boards().items()}
    old = [path for path in DIST.glob("*.json") if path not in wanted]
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        for path in changed + old:
            print(f"dashboards/dist/{path.name} is not what dashboards/ says: run `make generate`", file=sys.stderr)
        return 1 if changed or old else 0
    for path in old:
        path.unlink()
    DIST.mkdir(exist_ok=True)
    for path in changed:
        path.write_text(wanted[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
