"""S3 and what speaks like it. Requests are signed in the URL, so the transfer knows nothing of signatures.

Objects are asked for with If-Match: one replaced after the listing is noticed. What proves its content, in
this order: a SHA-256 or CRC-32 that the uploader stored over the whole object, an ETag that is an MD5, or an
ETag over the MD5s of equal parts. Where there is none of these (an object encrypted with a customer's key,
say) the size and the ETag are all that can be checked.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from noctaya_api.model_source import ModelSource

from noctaya_prewarm.digest import Digest, Kind
from noctaya_prewarm.errors import BadSettings, NetworkFault, NotFound, Refused
from noctaya_prewarm.listing import MAX_FILES, Listing, RemoteFile, digest_of
from noctaya_prewarm.retry import Retryable
from noctaya_prewarm.safe_path import safe_path
from noctaya_prewarm.secret import SecretDir
from noctaya_prewarm.settings import AgentSettings
from noctaya_prewarm.sources.s3_answers import Listed, digest_of_head, failure, parse_page, parts_of
from noctaya_prewarm.sources.sigv4 import Keys, encode, plain_query, presign
from noctaya_prewarm.sources.web_identity import from_environment
from noctaya_prewarm.transport import Client, Request
from noctaya_prewarm.trust import tls_context
from noctaya_prewarm.watch import Exchange

_DEFAULT_REGION: Final = "us-east-1"
_LIFETIME: Final = 3600
_TIMEOUT: Final = 30.0
_MAX_BODY: Final = 16 * 2**20
_CHECKSUMS: Final = {"x-amz-checksum-mode": "ENABLED"}


class Bucket:
    """The objects of a bucket below a prefix.

    Keys are those of the Secret (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`), else the
    environment's variables of these names, else those that the Pod's identity is exchanged for
    (`web_identity`); without any, requests are not signed, as for a public bucket.

    Args:
        source: the parsed URI.
        settings: Secret, region, authorities.
        now: the moment, in UTC.
    """

    def __init__(
        self,
        source: ModelSource,
        settings: AgentSettings,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._bucket = source.bucket
        self._prefix = f"{source.prefix}/" if source.prefix else ""
        self._endpoint = source.endpoint.rstrip("/")
        region = settings.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        self._region = region or _DEFAULT_REGION
        self._secret = SecretDir(settings.secret_dir)
        self._context = tls_context(settings.ca_file)
        self._now = now
        self._identity = from_environment(region=self._region, context=self._context, now=now)
        self._where = f"s3://{self._bucket}/{self._prefix}"

    def list(self) -> Listing:
        """The objects at this moment. Errors as `Source.list`."""
        client = Client(context=self._context, timeout=_TIMEOUT, agent="noctaya-prewarm")
        try:
            files = tuple(self._file(client, listed) for listed in self._objects(client))
        finally:
            client.close()
        if not files:
            raise NotFound(f"there is no object below {self._where}")
        return Listing(revision=digest_of(files), files=files)

    def request(self, file: RemoteFile) -> Request:
        """A URL, signed for an hour, and the ETag that the object must still have."""
        url = self._signed("GET", f"{self._prefix}{file.path}")
        return Request(url=url, headers={"If-Match": f'"{file.pin}"'})

    def _objects(self, client: Client) -> Iterator[Listed]:
        query = {"list-type": "2", "encoding-type": "url", "prefix": self._prefix}
        count = 0
        while True:
            _, body = self._ask(client, "GET", "", query=query)
            page = parse_page(body)
            for listed in page.objects:
                # Consoles make "folders": empty objects whose names end with a slash.
                if not listed.key.endswith("/"):
                    count += 1
                    yield listed
            if count > MAX_FILES:
                raise Refused(f"{self._where} has more than {MAX_FILES} objects; name a longer prefix")
            if not page.following:
                return
            query = {**query, "continuation-token": page.following}

    def _file(self, client: Client, listed: Listed) -> RemoteFile:
        path = safe_path(listed.key.removeprefix(self._prefix), what="object")
        head, _ = self._ask(client, "HEAD", listed.key, headers=_CHECKSUMS)
        digest = digest_of_head(head, listed.etag)
        if digest is None and (parts := parts_of(listed.etag, head)):
            digest = self._digest_of_parts(client, listed, parts)
        return RemoteFile(path=path, size=listed.size, digest=digest, pin=listed.etag)

    def _digest_of_parts(self, client: Client, listed: Listed, parts: int) -> Digest | None:
        head, _ = self._ask(client, "HEAD", listed.key, query={"partNumber": "1"})
        first = head.get("content-length", "")
        if head.get("x-amz-mp-parts-count") != str(parts) or not first.isdigit() or int(first) < 1:
            return None
        # Only equal parts, but for the last, can be told apart again.
        if not int(first) * (parts - 1) < listed.size <= int(first) * parts:
            return None
        return Digest(kind=Kind.S3_ETAG, value=listed.etag, part_size=int(first))

    def _ask(
        self,
        client: Client,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Mapping[str, str], bytes]:
        for _ in range(2):
            url = self._signed(method, key, query=query, headers=headers)
            request = Request(url=url, headers=headers or {}, method=method)
            answer = client.get(request, Exchange(clock=time.monotonic))
            try:
                body = answer.body.read(_MAX_BODY + 1)
            except OSError as error:
                client.drop()
                raise Retryable(f"{self._where}: {error}") from error
            client.finish()
            if answer.status == 200:
                if len(body) > _MAX_BODY:
                    raise NetworkFault(f"{self._where} answers with more than {_MAX_BODY} bytes")
                return answer.headers, body
            region = answer.headers.get("x-amz-bucket-region", self._region)
            if region == self._region or self._endpoint:
                break
            # The service tells where the bucket is.
            self._region = region
        raise failure(answer.status, answer.headers, body, self._where)

    def _signed(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        url = f"{self._base()}/{encode(key, safe='/')}"
        keys = self._keys()
        if keys is None:
            return f"{url}?{plain_query(query)}" if query else url
        return presign(
            method,
            url,
            query=query or {},
            headers=headers or {},
            keys=keys,
            region=self._region,
            now=self._now(),
            lifetime=_LIFETIME,
        )

    def _base(self) -> str:
        if self._endpoint:
            # A server of one's own rarely has a DNS name for each bucket.
            return f"{self._endpoint}/{self._bucket}"
        domain = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        if "." in self._bucket:
            # No certificate covers a bucket's dots.
            return f"https://s3.{self._region}.{domain}/{self._bucket}"
        return f"https://{self._bucket}.s3.{self._region}.{domain}"

    def _keys(self) -> Keys | None:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        if self._secret:
            access_key, secret_key = (self._secret.need(name) for name in names)
            token = self._secret.get("AWS_SESSION_TOKEN")
        else:
            access_key, secret_key = (os.environ.get(name, "") for name in names)
            token = os.environ.get("AWS_SESSION_TOKEN", "")
        if bool(access_key) != bool(secret_key):
            raise BadSettings(f"of {names[0]} and {names[1]} only one has a value")
        if access_key:
            return Keys(access_key=access_key, secret_key=secret_key, session_token=token)
        return self._identity.keys() if self._identity is not None and not self._secret else None
