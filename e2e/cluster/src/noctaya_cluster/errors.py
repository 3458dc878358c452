"""What goes wrong, told to the person who asked for a cluster."""

from __future__ import annotations


class ClusterError(Exception):
    """A cluster could not be had or does not work; the message says what and what to do."""


class Unsupported(ClusterError):
    """This provider can't do that."""
