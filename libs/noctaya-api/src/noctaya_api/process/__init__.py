"""The process kit: what every Noctaya process does the same way.

Signals, an HTTP server inside the running loop, JSON logs, metrics, traces, settings and token files. Nothing
in here knows Kubernetes or demand. Modules are imported one by one so that a process pays only for what it
uses.
"""
