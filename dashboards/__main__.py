"""Writes what boards and rules are generated into, or with --check says what is not up to date.

python -m dashboards [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

DIST = Path(__file__).parent / "dist"
NEEDED = (3, 11)


def boards() -> dict[str, str]:
    """The boards as they are committed, by file name."""
    from . import documents

    return {
        f"{uid}.json": json.dumps(board, indent=1, ensure_ascii=False) + "\n" for uid, board in documents.documents()
    }


def rules() -> dict[str, str]:
    """The rule file as it is committed."""
    from .rules import PATH, render

    return {str(PATH): render()}


def main(arguments: list[str]) -> int:
    """Exit code 0, or 1 where --check found something to write."""
    if sys.version_info < NEEDED:
        print("The boards are not looked at: their generator needs Python 3.11, the rest does not.")
        return 0
    wanted = {DIST / name: text for name, text in (boards() | rules()).items()}
    old = [path for path in DIST.glob("*.json") if path not in wanted]
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        for path in changed + old:
            print(
                f"dashboards/dist/{path.relative_to(DIST)} is not what dashboards/ says: run `make generate`",
                file=sys.stderr,
            )
        return 1 if changed or old else 0
    for path in old:
        path.unlink()
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
