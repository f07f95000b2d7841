"""These tests run in environments of their own, one for each peer: `make peers`, or `nox -s peers`, sets `PEER`."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("PEER") else ["test_*.py"]
