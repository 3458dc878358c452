"""Why a service can't be planned: the step that refuses it and what the user has to change."""

from __future__ import annotations

from noctaya_api.conditions import StepReason


class PlanError(Exception):
    """A service can't be turned into objects; nothing is written for it.

    `reason` is the step of the status vocabulary, the message tells the user what to change. Trying again
    helps only after the service, a runtime or the operator's settings changed.
    """

    def __init__(self, reason: StepReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
