"""Measuring how a model arrives: a hub, those who download from it, and what each run took."""
