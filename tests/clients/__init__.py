"""Real client libraries and agents, each in an environment of its own, against the simulated provider.

`with_<client>.py` needs the client, so that it is no part of the ordinary run: `make clients`, or, in an environment
that has the client, `python -m pytest tests/clients/with_<client>.py`. `programs/` holds what a user of each client
would write; nothing in them knows of the ledger.
"""

from __future__ import annotations
