"""The Helm charts below `charts/`: what is generated in them, and helm to try them with.

A chart's `values.yaml` is the one place that says what a value is: its comments become the README's table
and the schema's descriptions. Rights come from the operator's own list. `python -m noctaya_charts check`
compares.
"""
