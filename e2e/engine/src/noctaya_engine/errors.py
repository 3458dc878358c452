"""What can go wrong, as types; each message names the thing and the remedy."""


class EngineError(Exception):
    """Base of everything this package raises on purpose."""


class EngineUnavailable(EngineError):
    """No engine can run or answer here."""


class BuildFailed(EngineError):
    """An image or a base could not be built; the message ends with the builder's last words."""


class UnknownImage(EngineError):
    """A name that is in no catalog."""
