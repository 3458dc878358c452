"""Faults, one at a time, under steady mixed load: what clients saw against what the contract promises."""
