from noctaya_api.conditions import ObservationReason, Phase, Reason, StepReason


def test_the_words_of_the_alpha_are_kept() -> None:
    assert {"Pending", "Loading", "Ready", "ScaledToZero", "Degraded"} <= set(Phase)
    assert {
        "ScaledObjectApplied",
        "Available",
        "ScaledToZero",
        "Pending",
        "Inactive",
        "Healthy",
        "Progressing",
    } <= set(Reason)
    assert {
        "RuntimeResolution",
        "UnsupportedVendor",
        "ModelResolution",
        "ScaledObject",
        "Render",
        "GatewayConfig",
        "Cache",
        "Prewarm",
        "DemandAuthentication",
        "AutoscalingUnavailable",
        "ApplyScaledObject",
        "ApplyDemandAuthentication",
        "ApplyCachePVC",
        "ApplyPrewarmJob",
        "ApplyDeployment",
        "ApplyBackendService",
        "ApplyGateway",
        "ApplyGatewayService",
        "ApplyGatewayPodDisruptionBudget",
        "DeleteGatewayPodDisruptionBudget",
        "ApplyGatewayScaler",
        "ApplyGatewayScalerService",
        "DeleteGatewayScaler",
        "DeleteDemandAuthentication",
        "ObservePrewarmJob",
        "PrewarmFailed",
        "ObserveBackendDeployment",
        "ObserveBackendPods",
    } <= set(StepReason)


def test_observations_that_need_somebody_to_act_are_hard() -> None:
    soft = {"SchedulingDelayed", "ModelLoading", "Starting", "Activating"}
    assert {str(reason) for reason in ObservationReason if not reason.hard} == soft
    assert ObservationReason.PROGRESS_DEADLINE_EXCEEDED.hard
