"""The second wing: whether what the context says was still true. It knows nothing of reuse."""
