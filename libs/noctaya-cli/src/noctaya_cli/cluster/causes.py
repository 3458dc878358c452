"""Causes of a service's trouble that neither its conditions nor its gateways' numbers tell.

An expired certificate is to KEDA a scaler that does not answer, and a StorageClass that is missing hurts
nobody before the first Pod: `noctaya explain` looks, as far as the user's rights go.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from noctaya_api.conditions import ObservationReason

from noctaya_cli.cluster.access import ClusterError, NotThere, Object, Reader
from noctaya_cli.cluster.certificate_checks import check_certificates
from noctaya_cli.cluster.finding import Level
from noctaya_cli.cluster.platform_checks import class_path, wanted_class
from noctaya_cli.cluster.remedies import CERTIFICATE
from noctaya_cli.cluster.service_view import Problem

CONDITION: Final = "Certificate"
STORAGE: Final = "Storage"
"""In place of a condition's type."""


def causes_of(cluster: Reader, service: Object, *, now: datetime) -> Iterator[Problem]:
    """What is wrong with the service's certificate and its StorageClass.

    Raises:
        ClusterError: Pods can't be listed, for a service with a certificate.
    """
    namespace = str((service.get("metadata") or {}).get("namespace"))
    for finding in check_certificates(cluster, [service], now=now, namespace=namespace):
        if finding.level is Level.PROBLEM:
            yield Problem(condition=CONDITION, reason=CERTIFICATE, message=finding.what)
    if (wanted := wanted_class(service)) and _missing(cluster, wanted):
        message = f"there is no StorageClass {wanted}: the cache, and so the model's Pod, would wait for ever"
        yield Problem(condition=STORAGE, reason=ObservationReason.STORAGE_CLASS_MISSING, message=message)


def _missing(cluster: Reader, name: str) -> bool:
    try:
        cluster.get(class_path(name))
    except NotThere:
        return True
    except ClusterError:
        # Not everybody may look at StorageClasses; once a Pod waits for it, the operator says so.
        return False
    return False
