"""The committed stubs and the wire contract they carry."""

import subprocess
import sys
from pathlib import Path

from noctaya_api.externalscaler import externalscaler_pb2 as pb

GENERATE = Path(__file__).parents[4] / "proto" / "generate.py"


def test_the_committed_stubs_are_what_the_proto_file_gives() -> None:
    finished = subprocess.run([sys.executable, str(GENERATE), "--check"], capture_output=True, check=False)
    assert finished.returncode == 0, finished.stdout.decode() + finished.stderr.decode()


def test_a8_names_and_field_numbers_are_kedas() -> None:
    service = pb.DESCRIPTOR.services_by_name["ExternalScaler"]
    assert service.full_name == "externalscaler.ExternalScaler"
    assert [method.name for method in service.methods] == [
        "IsActive",
        "StreamIsActive",
        "GetMetricSpec",
        "GetMetrics",
    ]
    fields = {
        name: {field.name: field.number for field in message.fields}
        for name, message in pb.DESCRIPTOR.message_types_by_name.items()
    }
    assert fields == {
        "ScaledObjectRef": {"name": 1, "namespace": 2, "scalerMetadata": 3},
        "IsActiveResponse": {"result": 1},
        "GetMetricSpecResponse": {"metricSpecs": 1},
        "MetricSpec": {"metricName": 1, "targetSize": 2, "targetSizeFloat": 3},
        "GetMetricsRequest": {"scaledObjectRef": 1, "metricName": 2},
        "GetMetricsResponse": {"metricValues": 1},
        "MetricValue": {"metricName": 1, "metricValue": 2, "metricValueFloat": 3},
    }
