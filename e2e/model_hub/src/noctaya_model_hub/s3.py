"""The part of the S3 interface that downloads use: ListObjectsV2 and GetObject, path style.

Requests must be signed by a key in `hub.s3_keys`; a hub without keys is a public one. `POST /` is the token
service, which lends keys.
"""

import datetime
import urllib.parse
from xml.sax.saxutils import escape

from noctaya_model_hub.content import Content, md5
from noctaya_model_hub.exchange import Reply, Request, file_reply, text_reply
from noctaya_model_hub.repository import Hub
from noctaya_model_hub.sigv4 import Refused, check_signature

_MAX_KEYS = 1000
_STATUS = {"NoSuchBucket": 404, "NoSuchKey": 404, "RequestTimeTooSkewed": 403}


class S3:
    """Answers requests for buckets.

    Args:
        hub: what is served; `hub.page_size` bounds a page of a listing too.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def answer(self, request: Request) -> Reply:
        """The reply; S3's XML error otherwise."""
        bucket_name, *parts = request.segments
        if request.method == "POST" and not bucket_name:
            return self._hub.lender.answer(request, self._hub.s3_keys)
        key = "/".join(parts)
        route = "s3-get" if key else "s3-list"
        if self._hub.s3_keys:
            try:
                check_signature(request, self._hub.s3_keys, now=datetime.datetime.now(datetime.UTC))
            except Refused as refused:
                return _error(route, refused.code, str(refused), path=key)
            access_key = request.query.get("X-Amz-Credential", "").partition("/")[0]
            if not self._hub.lender.knows(access_key, request.query):
                return _error(route, "InvalidToken", "the session token is not that of the key", path=key)
        bucket = self._hub.buckets.get(bucket_name)
        if bucket is None:
            return _error(route, "NoSuchBucket", "The specified bucket does not exist", path=key)
        if not key:
            return self._list(bucket_name, bucket, request)
        content = bucket.get(key)
        if content is None:
            return _error(route, "NoSuchKey", "The specified key does not exist.", path=key)
        condition = request.headers.get("if-match")
        if condition is not None and condition.strip('"') != md5(content):
            return _error(route, "PreconditionFailed", "the object has changed", path=key, status=412)
        return file_reply(route, key, content, request, etag=md5(content))

    def _list(self, name: str, bucket: dict[str, Content], request: Request) -> Reply:
        query = request.query
        prefix = query.get("prefix", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        limit = min(int(query.get("max-keys", _MAX_KEYS)), self._hub.page_size)
        keys = [key for key in sorted(bucket) if key.startswith(prefix) and key > after]
        page, more = keys[:limit], len(keys) > limit
        encode = query.get("encoding-type") == "url"
        rows = [
            f"<Contents><Key>{_shown(key, encode)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{md5(bucket[key])}&quot;</ETag><Size>{bucket[key].size}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for key in page
        ]
        following = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        encoding = "<EncodingType>url</EncodingType>" if encode else ""
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{escape(name)}</Name><Prefix>{_shown(prefix, encode)}</Prefix>"
            f"<KeyCount>{len(page)}</KeyCount><MaxKeys>{limit}</MaxKeys>{encoding}"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{following}{''.join(rows)}</ListBucketResult>"
        )
        return text_reply("s3-list", 200, body, path=prefix, headers={"Content-Type": "application/xml"})


def _shown(key: str, encode: bool) -> str:
    return urllib.parse.quote(key) if encode else escape(key)


def _error(route: str, code: str, text: str, *, path: str, status: int = 403) -> Reply:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{escape(text)}</Message></Error>"
    headers = {"Content-Type": "application/xml"}
    return text_reply(route, _STATUS.get(code, status), body, path=path, headers=headers)
