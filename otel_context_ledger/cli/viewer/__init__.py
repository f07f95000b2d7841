"""The page of `context-ledger dashboard`: what it is made of, who serves it, and what it may ask of Prometheus."""
