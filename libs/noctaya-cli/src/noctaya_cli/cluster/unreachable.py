"""Why an API server gave no answer, in a sentence, out of what the HTTP client raised. Pure."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

_TOLD = 300
"""Characters of a text that nobody wrote for people."""


def why(error: BaseException, *, server: str, seconds: float) -> str:
    """What happened, and where to look.

    Args:
        error: of urllib3 or the socket below it.
        server: the URL that was asked.
        seconds: that an answer may take.
    """
    chain = list(_causes(error))
    kinds = {name for each in chain for name in (kind.__name__ for kind in type(each).__mro__)}
    if "NameResolutionError" in kinds or "gaierror" in kinds:
        return f"the name in {server} can't be resolved: another context, or a VPN that is not up?"
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            return (
                f"the certificate of {server} is not trusted ({each.verify_message}): the kubeconfig's "
                "certificate authority is another one, or somebody is in between"
            )
    if "ConnectionRefusedError" in kinds or any("refused" in str(each) for each in chain):
        return f"nothing listens at {server}: is the cluster up, and is this the context you mean?"
    if kinds & {"ConnectTimeoutError", "ReadTimeoutError", "TimeoutError"}:
        return f"{server} did not answer within {seconds:g} s: the network, or an API server that is stuck"
    if "SSLError" in kinds:
        return f"no TLS with {server}: {short(chain[-1])}"
    return f"{server}: {short(error)}"


def short(error: BaseException) -> str:
    """The text of an error in one line."""
    text = " ".join(str(error).split())
    return text[:_TOLD] or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came of, the innermost last."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        reason = getattr(found, "reason", None)
        inner = next((each for each in found.args if isinstance(each, BaseException)), None)
        found = reason if isinstance(reason, BaseException) else inner or found.__cause__ or found.__context__
