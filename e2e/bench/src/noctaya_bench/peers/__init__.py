"""The proxies that are measured next to each other."""
