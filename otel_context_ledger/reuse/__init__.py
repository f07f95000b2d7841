"""Wing 1, reuse: what was sent, what of it was sent before, what the cache did with it, and why.

Pure: no OpenTelemetry, no SDK, no clock. It knows nothing of the other wing.
"""
