"""JSON Schemas of Grafana's classic boards, made by generate.py."""
