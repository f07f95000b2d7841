"""Owns where the schemas beside it come from: Grafana's own types, of the package @grafana/schema (Apache-2.0).

    python -m dashboards.schema.generate

Needs node and npm. Descriptions are left out, which makes the files a third as long.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGES = ("@grafana/schema@13.2.3", "ts-json-schema-generator@2.3.0", "typescript@5.9.3")
TYPES = Path("node_modules/@grafana/schema/dist/types/raw")


def _panel(kind: str) -> Path:
    return TYPES / "composable" / kind / "panelcfg" / "x" / "types.gen.d.ts"


# File name: where its type is declared, and how it is called. Stats and bars have no settings of single fields.
DECLARED = {
    "dashboard": (TYPES / "dashboard" / "x" / "types.gen.d.ts", "Dashboard"),
    **{f"{kind}.options": (_panel(kind), "Options") for kind in ("stat", "timeseries", "table", "bargauge")},
    **{f"{kind}.field": (_panel(kind), "FieldConfig") for kind in ("timeseries", "table")},
}


def main() -> None:
    """Writes all schemas anew."""
    with tempfile.TemporaryDirectory() as folder:
        _run(folder, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *PACKAGES)
        for name, (path, declared) in DECLARED.items():
            arguments = ("--no-type-check", "--path", str(path), "--type", declared)
            schema = json.loads(_run(folder, "npx", "ts-json-schema-generator", *arguments))
            text = json.dumps(_bare(schema), indent=1, sort_keys=True) + "\n"
            (HERE / f"{name}.json").write_text(text, encoding="utf-8")


def _run(folder: str, *command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def _bare(schema: Any, *, names: bool = False) -> Any:
    """A schema without descriptions; within `names` (properties, definitions) a key is a name, whatever it is."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _bare(value, names=not names and key in ("properties", "definitions"))
        for key, value in schema.items()
        if names or key != "description"
    }


if __name__ == "__main__":
    main()
