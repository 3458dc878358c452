"""Each image does its work with no rights, and leaves when told."""

from __future__ import annotations

from noctaya_engine.started import Start
from noctaya_engine.trials import Trial

GRACE = 20
USER = "65532"
ANY_USER = "1000680000:0"
FACTS = """
import os
status = dict(line.split(":", 1) for line in open("/proc/1/status"))
mounts = [line.split() for line in open("/proc/self/mounts")]
print(status["Uid"].split()[0], status["Gid"].split()[0])
print(int(status["CapEff"], 16), status["NoNewPrivs"].strip())
print(next(mount[3].split(",")[0] for mount in mounts if mount[1] == "/"))
"""


def test_it_serves_as_non_root_on_a_read_only_root_without_capabilities(trial: Trial, start: Start) -> None:
    container = start(trial)
    container.await_health()
    assert container.python(FACTS).split() == [USER, USER, "0", "1", "ro"]


def test_it_serves_as_any_user_of_any_group(trial: Trial, start: Start) -> None:
    container = start(trial, user=ANY_USER)
    container.await_health()
    assert container.python(FACTS).split()[:2] == ANY_USER.split(":")


def test_it_ends_in_order_within_its_grace(trial: Trial, start: Start) -> None:
    container = start(trial)
    container.await_health()
    assert container.stop(GRACE) == trial.exit_code, container.log()
    assert "Traceback" not in container.log()


def test_a_bad_setting_is_refused_by_name_on_standard_error(trial: Trial, start: Start) -> None:
    refusal = trial.refusal
    container = start(trial, env=dict(refusal.env), arguments=refusal.arguments)
    assert container.exit_code() == refusal.code
    assert refusal.names in container.errors()
    assert "Traceback" not in container.errors()
