"""What a person asks on the command line: how the cold start went, what is wrong, what to do."""

from __future__ import annotations

from noctaya_scenarios.command_line import noctaya
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.manifests import service_spec
from noctaya_scenarios.scene import Scene


def test_t1_explain_tells_where_a_cold_start_spent_its_time(lab: Lab, scene: Scene) -> None:
    client = scene.deploy(
        runtime=scene.runtime(STUB_STARTUP_DELAY="4s"), scaling={"scaleDownStabilization": "60s"}
    )
    assert client.ask().status == 200
    scene.await_status(lambda found: found.get("lastActivation", {}).get("outcome") == "Succeeded")
    code, told = noctaya(lab, "explain", "chat", f"--namespace={scene.namespace}")
    assert (code, told["phase"], told["problems"]) == (0, "Ready", [])
    phases = told["phases"]
    assert phases["load"] >= 3, "the engine took four seconds to load"
    assert phases["total"] >= phases["load"]


def test_doctor_names_what_is_wrong_and_what_to_do(lab: Lab, scene: Scene) -> None:
    scene.create("chat", **service_spec("no-such-runtime"))
    scene.await_condition("Degraded", "True", "RuntimeResolution")
    code, findings = noctaya(lab, "doctor")
    assert code == 1
    name = f"{scene.namespace}/chat"
    (found,) = [each for each in findings if name in each["what"] and each["area"] == "services"]
    assert found["level"] == "problem"
    assert "no-such-runtime" in found["what"]
    assert "inferenceruntimes" in found["remedy"]
    good = {each["area"] for each in findings if each["level"] == "good"}
    assert {"kubernetes", "crds", "keda", "operator", "rights", "storage"} <= good
