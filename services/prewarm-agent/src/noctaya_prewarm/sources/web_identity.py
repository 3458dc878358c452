"""Keys for a bucket without a long-lived secret: the identity of the Pod is exchanged for them.

A platform puts a signed token into the Pod and says which role it stands for (on AWS "IAM roles for service
accounts"; other S3 services with an STS do the same). Keys last an hour or so and are renewed well before.
"""

import os
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlencode
from xml.etree import ElementTree

from noctaya_prewarm.answers import REMEDY
from noctaya_prewarm.dial import shown
from noctaya_prewarm.errors import BadSettings, NetworkFault, NotAuthorised, PrewarmError
from noctaya_prewarm.retry import Retryable
from noctaya_prewarm.secret import read_value
from noctaya_prewarm.sources.sigv4 import Keys
from noctaya_prewarm.transport import Client, Request
from noctaya_prewarm.watch import Exchange

TOKEN_FILE: Final = "AWS_WEB_IDENTITY_TOKEN_FILE"  # noqa: S105  a variable's name
ROLE: Final = "AWS_ROLE_ARN"
ENDPOINT: Final = "AWS_ENDPOINT_URL_STS"
SESSION: Final = "AWS_ROLE_SESSION_NAME"
RENEWED_BEFORE: Final = timedelta(minutes=15)
"""Of their end; a quarter of the shortest usual hour, and longer than any outage that a run outlives."""
_TIMEOUT: Final = 30.0
_MAX_ANSWER: Final = 64 * 1024
_PASSING: Final = frozenset({"IDPCommunicationError", "Throttling", "ServiceUnavailable", "InternalFailure"})


@dataclass(frozen=True, kw_only=True)
class _Lent:
    keys: Keys
    until: datetime


class WebIdentity:
    """Gives keys, from any thread.

    Args:
        role: the role that is asked for.
        token_file: file with the Pod's token, read again for each exchange.
        endpoint: URL of the token service.
        session: how the session is called in the platform's records.
        context: for TLS.
        now: the moment, in UTC.
    """

    def __init__(
        self,
        *,
        role: str,
        token_file: Path,
        endpoint: str,
        session: str,
        context: ssl.SSLContext,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._role, self._token_file = role, token_file
        self._endpoint, self._session = endpoint, session
        self._context, self._now = context, now
        self._lock = threading.Lock()
        self._lent: _Lent | None = None

    def keys(self) -> Keys:
        """Keys that are good for a while yet.

        Raises:
            BadSettings: there is no token, or what it is asked with is no good.
            NotAuthorised: the role is refused.
            NetworkFault: the service answers with something else.
            Retryable: the service can't be had now.
        """
        with self._lock:
            lent = self._lent
            if lent is not None and self._now() < lent.until - RENEWED_BEFORE:
                return lent.keys
            try:
                self._lent = lent = self._exchange()
            except Retryable:
                if lent is None or self._now() >= lent.until:
                    raise
            return lent.keys

    def _exchange(self) -> _Lent:
        token = read_value(self._token_file)
        if not token:
            raise BadSettings(f"{TOKEN_FILE}: there is no token at {self._token_file}")
        form = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": self._role,
            "RoleSessionName": self._session,
            "WebIdentityToken": token,
        }
        status, body = self._ask(urlencode(form).encode())
        if status != 200:
            raise self._failure(status, body)
        return _parsed(body, shown(self._endpoint))

    def _ask(self, form: bytes) -> tuple[int, bytes]:
        client = Client(context=self._context, timeout=_TIMEOUT, agent="noctaya-prewarm")
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        request = Request(url=self._endpoint, credentials=headers, method="POST", content=form)
        try:
            answer = client.get(request, Exchange(clock=time.monotonic))
            return answer.status, answer.body.read(_MAX_ANSWER)
        except OSError as error:
            raise Retryable(f"{shown(self._endpoint)}: {error}") from error
        finally:
            client.close()

    def _failure(self, status: int, body: bytes) -> PrewarmError | Retryable:
        code, message = _error_of(body)
        text = f"{shown(self._endpoint)} answers {status} {code} for the role {self._role}: {message}"
        if status >= 500 or status == 429 or code in _PASSING:
            return Retryable(text)
        if status in {400, 401, 403}:
            return NotAuthorised(f"{text}; {REMEDY}")
        return NetworkFault(text)


def from_environment(
    *, region: str, context: ssl.SSLContext, now: Callable[[], datetime]
) -> WebIdentity | None:
    """The identity that the platform put into the environment, if it did. Raises BadSettings."""
    file, role = os.environ.get(TOKEN_FILE, ""), os.environ.get(ROLE, "")
    if not file:
        return None
    if not role:
        raise BadSettings(f"{TOKEN_FILE} is set and {ROLE} is not: which role is to be asked for?")
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return WebIdentity(
        role=role,
        token_file=Path(file),
        endpoint=os.environ.get(ENDPOINT) or f"https://sts.{region}.{domain}/",
        session=os.environ.get(SESSION) or "noctaya-prewarm",
        context=context,
        now=now,
    )


def _parsed(body: bytes, where: str) -> _Lent:
    found = {} if (root := _xml(body)) is None else {_name(each): each.text or "" for each in root.iter()}
    try:
        keys = Keys(
            access_key=found["AccessKeyId"],
            secret_key=found["SecretAccessKey"],
            session_token=found["SessionToken"],
        )
        until = datetime.fromisoformat(found["Expiration"])
    except (KeyError, ValueError) as error:
        raise NetworkFault(f"{where} gives no keys that can be used: {error}") from error
    return _Lent(keys=keys, until=until if until.tzinfo else until.replace(tzinfo=UTC))


def _error_of(body: bytes) -> tuple[str, str]:
    found = {} if (root := _xml(body)) is None else {_name(each): each.text or "" for each in root.iter()}
    code, message = (
        "".join(letter for letter in found.get(name, "") if letter.isprintable())[:200]
        for name in ("Code", "Message")
    )
    return code, message


def _xml(body: bytes) -> ElementTree.Element | None:
    try:
        # The parser's library refuses entity bombs itself; the size is bounded.
        return ElementTree.fromstring(body)  # noqa: S314
    except ElementTree.ParseError:
        return None


def _name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]
