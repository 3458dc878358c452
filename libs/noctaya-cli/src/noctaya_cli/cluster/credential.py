"""What may be wrong with a credential that an API server does not accept."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path


def remark(certificate: str | None, *, now: datetime) -> str:
    """What to do about a refused credential, in words that follow a sentence.

    Args:
        certificate: file of the client certificate that was shown, if one was.
        now: what its end is compared with.
    """
    ends = _end(certificate) if certificate else None
    if ends is not None and ends < now:
        days = (now - ends).days
        ago = f"{days} days ago" if days > 1 else f"at {ends:%Y-%m-%d %H:%M} UTC"
        return f"its client certificate expired {ago}: get a new kubeconfig, or name another --context"
    return "it may have expired: log in again, or name another --context"


def _end(certificate: str) -> datetime | None:
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415 - only where something is wrong

    try:
        return load_pem_x509_certificate(Path(certificate).read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        # The server has judged it already; here it is only about a hint.
        return None
