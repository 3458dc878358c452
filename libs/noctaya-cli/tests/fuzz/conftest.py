"""Every run tries the same few inputs; `--hypothesis-profile=fuzz` (`tox -e fuzz`) tries many new ones."""

from hypothesis import HealthCheck, settings

CALM = tuple(HealthCheck)
"""The machine may be busy, and fixtures here are made to be shared by examples."""

settings.register_profile(
    "bounded", max_examples=60, derandomize=True, deadline=None, suppress_health_check=CALM
)
settings.register_profile(
    "fuzz", max_examples=3000, derandomize=False, deadline=None, print_blob=True, suppress_health_check=CALM
)
if settings.get_current_profile_name() != "fuzz":
    settings.load_profile("bounded")
