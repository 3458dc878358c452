"""Soak: half a minute of clients that come, wait, and leave at random."""
