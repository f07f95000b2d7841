"""Boards, recording rules and alerts over what the ledger counts: what is asked stands in measures.py."""
