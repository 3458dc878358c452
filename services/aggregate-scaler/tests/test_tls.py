"""The scaler with mutual TLS: what it tells of its certificate."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

ENDS = datetime(2035, 6, 1, tzinfo=UTC)
EXPIRY = 'noctaya_gateway_scaler_certificate_expiry_timestamp_seconds{side="server"}'


@pytest.fixture
def overrides(tmp_path: Path) -> dict[str, Any]:
    authority = trustme.CA()
    issued = authority.issue_cert("chat-scaler.models.svc", not_after=ENDS)
    issued.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    issued.private_key_pem.write_to_path(tmp_path / "tls.key")
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    return {
        "scaler_tls_cert_file": str(tmp_path / "tls.crt"),
        "scaler_tls_key_file": str(tmp_path / "tls.key"),
        "scaler_tls_client_ca_file": str(tmp_path / "ca.crt"),
    }


async def test_the_end_of_the_certificate_is_a_metric(scaler: Any) -> None:
    assert (await scaler.metrics())[EXPIRY] == ENDS.timestamp()
