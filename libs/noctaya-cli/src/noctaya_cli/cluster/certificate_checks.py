"""How long the certificates that scalers show to KEDA are good for.

The scaler itself is asked: it says what it shows, which takes no right to read Secrets. Only when none of its
Pods can be asked, the Secret is looked at, if that is allowed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from noctaya_api import names

from noctaya_cli.cluster.access import ClusterError, NotAllowed, NotThere, Object, Reader, core_path
from noctaya_cli.cluster.finding import Finding, Level, good, problem, warning
from noctaya_cli.cluster.pod_metrics import pods_by_service, read_metrics

EXPIRES_SOON: Final = 14.0
"""Days; what certificate issuers commonly renew within."""
EXPIRY: Final = 'noctaya_gateway_scaler_certificate_expiry_timestamp_seconds{side="server"}'
_RENEW: Final = "Renew it; it is reloaded by itself."
_LATEST: Final = datetime.max.replace(tzinfo=UTC).timestamp()


def check_certificates(
    cluster: Reader, services: list[Object], *, now: datetime, namespace: str | None = None
) -> Iterator[Finding]:
    """The certificate of each service whose scaler has one; `namespace` where all of them are in one."""
    secured = [(each, secret) for each in services if (secret := _secret_of(each))]
    if not secured:
        return
    labels = f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"
    aggregates = pods_by_service(
        cluster.items(core_path("pods", namespace), labels=f"{labels},{names.LABEL_SCALER}")
    )
    gateways = pods_by_service(
        cluster.items(core_path("pods", namespace), labels=f"{labels},{names.LABEL_GATEWAY}")
    )
    for service, secret in secured:
        meta = service.get("metadata") or {}
        key = (str(meta.get("namespace")), str(meta.get("name")))
        where = f"{key[0]}/{secret}, the certificate of {key[1]}'s scaler"
        # With an aggregate scaler KEDA talks to that one, and gateways have no certificate.
        pods = [(pod, names.AGGREGATOR_PORT) for pod in aggregates.get(key, ())]
        pods = pods or [(pod, names.GATEWAY_PORT) for pod in gateways.get(key, ())]
        ends, why = _shown(cluster, pods)
        if ends is not None:
            yield _judged(where, ends, now)
        else:
            yield from _stored(cluster, key[0], secret, where=where, why=why, now=now)


def _secret_of(service: Object) -> str:
    scaling = (service.get("spec") or {}).get("scaling") or {}
    tls = (scaling.get("externalScaler") or {}).get("tls") or {}
    return str(tls.get("serverSecretName") or "")


def _shown(cluster: Reader, pods: list[tuple[Object, int]]) -> tuple[datetime | None, str]:
    """The earliest end among the certificates that Pods show, and why there is none."""
    found: list[datetime] = []
    why = "its scaler has no Pod"
    for pod, port in pods:
        try:
            stamp = read_metrics(cluster, pod, port).get(EXPIRY)
        except NotAllowed:
            why = "asking its scaler takes the right to get pods/proxy"
        except ClusterError as error:
            why = f"its scaler could not be asked: {error}"
        else:
            if stamp is not None and 0 <= stamp <= _LATEST:
                found.append(datetime.fromtimestamp(stamp, UTC))
            else:
                why = "its scaler shows none yet"
    return min(found, default=None), why


def _stored(
    cluster: Reader, namespace: str, secret: str, *, where: str, why: str, now: datetime
) -> Iterator[Finding]:
    """What the Secret says, where the scaler can't."""
    try:
        data = cluster.get(f"{core_path('secrets', namespace)}/{secret}").get("data") or {}
        ends = _not_after(base64.b64decode(data.get("tls.crt") or ""))
    except NotThere:
        yield problem(
            "certificates", f"{where}, doesn't exist", remedy="Create the Secret; KEDA can't connect."
        )
    except NotAllowed:
        yield Finding(
            area="certificates",
            level=Level.UNKNOWN,
            what=f"{where}, could not be looked at: {why}",
            remedy=f"It is known once its scaler is ready and may be asked; kubectl -n {namespace} describe "
            "pods says what keeps it.",
        )
    except ValueError as error:
        yield problem("certificates", f"{where}, can't be read: {error}", remedy="Issue it again.")
    else:
        yield _judged(where, ends, now)


def _judged(where: str, ends: datetime, now: datetime) -> Finding:
    days = (ends - now).total_seconds() / 86400
    if days <= 0:
        return problem("certificates", f"{where}, expired {abs(days):.0f} days ago", remedy=_RENEW)
    if days < EXPIRES_SOON:
        return warning("certificates", f"{where}, expires in {days:.0f} days", remedy=_RENEW)
    return good("certificates", f"{where}: good for {days:.0f} days")


def _not_after(pem: bytes) -> datetime:
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415 - only where there is one

    return load_pem_x509_certificate(pem).not_valid_after_utc
