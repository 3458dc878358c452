"""The token service beside S3, AssumeRoleWithWebIdentity: lends keys to whoever shows a token we know."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from noctaya_model_hub.exchange import Reply, Request, text_reply

_XML = {"Content-Type": "text/xml"}
_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"


@dataclass(kw_only=True)
class Lender:
    """Who may be whom.

    Attributes:
        roles: the role that a token stands for.
        lifetime: seconds that keys are said to last.
        lent: session tokens by access key, of all keys that were lent.
    """

    roles: dict[str, str] = field(default_factory=dict)
    lifetime: float = 3600.0
    lent: dict[str, str] = field(default_factory=dict)

    def answer(self, request: Request, s3_keys: dict[str, str]) -> Reply:
        """The reply; keys that are lent become keys of the buckets."""
        form = {name: values[-1] for name, values in parse_qs(request.body.decode()).items()}
        if form.get("Action") != "AssumeRoleWithWebIdentity" or form.get("Version") != "2011-06-15":
            return _error("InvalidAction", "there is one action, of one version")
        role = self.roles.get(form.get("WebIdentityToken", ""))
        if role is None:
            return _error("InvalidIdentityToken", "nobody we know signed the token")
        if role != form.get("RoleArn") or not form.get("RoleSessionName"):
            return _error("AccessDenied", "the token does not stand for that role", status=403)
        number = len(self.lent) + 1
        key, secret, session = f"LENT{number}", f"lent-secret-{number}", f"lent/session+{number}=="
        s3_keys[key], self.lent[key] = secret, session
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=self.lifetime)
        fields = {
            "AccessKeyId": key,
            "SecretAccessKey": secret,
            "SessionToken": session,
            "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        shown = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in fields.items())
        result = f"<AssumeRoleWithWebIdentityResult><Credentials>{shown}</Credentials>"
        body = (
            f'<AssumeRoleWithWebIdentityResponse xmlns="{_NAMESPACE}">{result}'
            "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )
        return text_reply("sts", 200, body, headers=_XML)

    def knows(self, access_key: str, query: Mapping[str, str]) -> bool:
        """Whether a request by that key shows its session token, if it has one."""
        session = self.lent.get(access_key)
        return session is None or query.get("X-Amz-Security-Token") == session


def _error(code: str, text: str, *, status: int = 400) -> Reply:
    inner = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{escape(text)}</Message></Error>"
    body = f'<ErrorResponse xmlns="{_NAMESPACE}">{inner}</ErrorResponse>'
    return text_reply("sts", status, body, headers=_XML)
