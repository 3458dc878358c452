"""Why a run failed: one type a cause, with the exit code and the word that the operator shows.

Messages are shown to people, in a pod's termination message and in the status of a service. They name the
thing and the remedy, and never hold a credential or the query of a signed URL.
"""

from typing import ClassVar


class PrewarmError(Exception):
    """A run can't reach its end. `code` is the process's exit code, `reason` one word for machines."""

    code: ClassVar[int] = 1
    reason: ClassVar[str] = "Failed"


class BadSettings(PrewarmError):
    """An argument, a setting, an extra or a mount is missing or wrong; trying again changes nothing."""

    code = 2
    reason = "BadSettings"


class NotAuthorised(PrewarmError):
    """The source wants a credential, or another one than it got."""

    code = 10
    reason = "NotAuthorised"


class NotFound(PrewarmError):
    """The source has no such repository, revision, bucket or file, or the patterns leave nothing of it."""

    code = 11
    reason = "NotFound"


class NoSpace(PrewarmError):
    """The file system of the target has not enough room."""

    code = 12
    reason = "NoSpace"


class IntegrityFault(PrewarmError):
    """What arrived, or what lies on the disk, is not what the source announced."""

    code = 13
    reason = "IntegrityFault"


class Refused(PrewarmError):
    """The source offers what is never written to a disk: paths that leave the target, links, bombs."""

    code = 14
    reason = "Refused"


class DeadlineExceeded(PrewarmError):
    """The total deadline has passed."""

    code = 15
    reason = "DeadlineExceeded"


class NetworkFault(PrewarmError):
    """The source can't be reached, or keeps failing after all retries."""

    code = 16
    reason = "NetworkFault"


class Busy(PrewarmError):
    """Another agent holds the target, or has taken it over."""

    code = 17
    reason = "Busy"


class Interrupted(PrewarmError):
    """The process was asked to stop; what has arrived stays, and the next run goes on from there."""

    reason = "Interrupted"
