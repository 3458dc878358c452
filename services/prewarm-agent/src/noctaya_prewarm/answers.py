"""What a response to a request for a stretch of a file means. Pure: status and headers in, a verdict out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from noctaya_prewarm.dial import shown
from noctaya_prewarm.errors import NetworkFault, NotAuthorised
from noctaya_prewarm.retry import Retryable, asked_pause
from noctaya_prewarm.transport import Answer

_CONTENT_RANGE: Final = re.compile(r"bytes\s+(\d{1,19})-(\d{1,19})/(\d{1,19}|\*)", re.IGNORECASE)
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524, 529})
_GONE: Final = frozenset({404, 410, 412, 416})
UNREADABLE: Final = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What a hub's own client raises over an answer that is not what it expects."""


class Changed(Exception):
    """The file is not the listed one any more; the source has to be listed again."""


class NoRanges(Exception):
    """The server sends files only whole."""


class Denied(Exception):
    """The source's own server wants another credential; `problem` says so for good."""

    def __init__(self, problem: NotAuthorised) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True)
class Stretch:
    """Bytes `[start, end)` of a file of `size` bytes, asked for with a Range header when `ranged`."""

    start: int
    end: int
    size: int
    ranged: bool


def judge(answer: Answer, wanted: Stretch) -> None:
    """Return if the body is just what was asked for.

    Raises:
        Changed: the file is gone, or of another size.
        NoRanges: the whole file comes where a stretch was asked for.
        Denied: not without another credential.
        Retryable: it may work later, or over a fresh link.
        NetworkFault: it will never work.
    """
    status, headers, where = answer.status, answer.headers, shown(answer.url)
    if status not in {200, 206}:
        raise _refusal(answer)
    if headers.get("content-encoding", "identity").lower() not in {"identity", ""}:
        raise NetworkFault(f"{where} sends compressed content, which was not asked for and can't be verified")
    if status == 200:
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) != wanted.size:
            raise Changed(f"{where} has {length} bytes and not the {wanted.size} that were listed")
        if wanted.ranged:
            raise NoRanges(where)
        return
    _judge_range(headers, wanted, where)


def _judge_range(headers: Mapping[str, str], wanted: Stretch, where: str) -> None:
    found = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
    if found is None:
        raise Retryable(f"{where} answers with a part of the file and does not say which")
    if found[3] != "*" and int(found[3]) != wanted.size:
        raise Changed(f"{where} has {found[3]} bytes and not the {wanted.size} that were listed")
    if int(found[1]) != wanted.start or int(found[2]) != wanted.end - 1:
        raise Retryable(
            f"{where} sends bytes {found[1]}-{found[2]} and not {wanted.start}-{wanted.end - 1} as asked"
        )


def _refusal(answer: Answer) -> Exception:
    status, where = answer.status, shown(answer.url)
    told = explanation(answer.headers)
    text = f"{where} answers {status}{told}"
    if status in _PASSING:
        return Retryable(text, after=asked_pause(answer.headers))
    if answer.redirected and status in {400, 401, 403, 404, 410}:
        # A signed link that expired, or was made before a token changed: a fresh one is asked for.
        return Retryable(text, at_once=True)
    if status in {401, 403}:
        return Denied(NotAuthorised(f"{text}; {REMEDY}"))
    if status in _GONE:
        return Changed(text)
    return NetworkFault(text)


REMEDY: Final = (
    "give the model's source a secretRef with a valid credential (or NOCTAYA_PREWARM_SECRET_DIR), and accept "
    "the model's conditions with that account if it is gated"
)


def explanation(headers: Mapping[str, str]) -> str:
    """What Hugging Face's own headers add to a status, as ` (code: message)`, or nothing."""
    parts = [headers.get(name, "") for name in ("x-error-code", "x-error-message")]
    text = ": ".join("".join(c for c in part if c.isprintable())[:300] for part in parts if part)
    return f" ({text})" if text else ""
