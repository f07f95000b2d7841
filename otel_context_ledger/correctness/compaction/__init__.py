"""Compaction audited like the lossy migration that it is: what was to survive, what did, and what it cost.

Pure: times, ids, texts and digests are arguments. Happenings of a session are folded over its `course`; each gives the
events that are new or known better. Who sees the happenings, and where events go, is left to the ledger.
"""
