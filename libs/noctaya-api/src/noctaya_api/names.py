"""Fixed names of the Noctaya contract: API group, labels, annotations, ports, paths, environment.

The names are public: manifests, dashboards, alerts and mixed-version installs depend on them, so a component
never writes one of them as a literal of its own.
"""

from typing import Final

GROUP: Final = "serving.noctaya.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
LLMSERVICE_KIND: Final = "LLMService"
INFERENCE_RUNTIME_KIND: Final = "InferenceRuntime"

FIELD_MANAGER: Final = "noctaya-operator"
CREATE_FIELD_MANAGER: Final = "noctaya-operator-create"
LEADER_LEASE: Final = "6d7012cb.noctaya.io"
EVENT_CONTROLLER: Final = "llmservice-controller"

# Labels
LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "noctaya"
LABEL_LLMSERVICE: Final = f"{GROUP}/llmservice"
LABEL_RUNTIME: Final = f"{GROUP}/runtime"
LABEL_GATEWAY: Final = f"{GROUP}/gateway"
LABEL_SCALER: Final = f"{GROUP}/scaler"
LABEL_CLIENT_ACCESS: Final = f"{GROUP}/client-access"
LABEL_MONITORING_ACCESS: Final = f"{GROUP}/monitoring-access"
LABEL_ASCEND_PRODUCT: Final = f"{GROUP}/ascend-product"
# KEDA's own, on each ScaledObject and on the HorizontalPodAutoscaler it makes for it
LABEL_KEDA_SCALED_OBJECT: Final = "scaledobject.keda.sh/name"

# Annotations
ANNOTATION_CREATE_ONCE_HASH: Final = f"{GROUP}/create-once-hash"
ANNOTATION_VOLCANO_QUEUE: Final = "scheduling.volcano.sh/queue-name"
ANNOTATION_MODEL_SOURCE: Final = f"{GROUP}/model-source"
ANNOTATION_RETAIN: Final = f"{GROUP}/retain"
ANNOTATION_ACTIVATION_FAILURE: Final = f"{GROUP}/activation-failure"
# The activation of that gateway that the failure was told for last, by its id
ANNOTATION_ACTIVATION_FAILURE_OF: Final = f"{GROUP}/activation-failure-of"
ANNOTATION_PREWARMING: Final = f"{GROUP}/prewarming"
ANNOTATION_KEEP: Final = f"{GROUP}/keep"
ANNOTATION_KEDA_PAUSED_REPLICAS: Final = "autoscaling.keda.sh/paused-replicas"
ANNOTATION_KEDA_PAUSED: Final = "autoscaling.keda.sh/paused"

# Ports
GATEWAY_PORT: Final = 8080
PREWARM_PORT: Final = 8080
PULL_PROGRESS_PORT: Final = 8081
SCALER_GRPC_PORT: Final = 9090
AGGREGATOR_PORT: Final = 9091
SERVICE_PORT: Final = 80
HTTP_PORT_NAME: Final = "http"
GRPC_PORT_NAME: Final = "grpc"

# HTTP paths
PATH_HEALTHZ: Final = "/healthz"
PATH_READYZ: Final = "/readyz"
PATH_METRICS: Final = "/metrics"
PATH_QUEUE: Final = "/noctaya/queue"
PATH_OPENAPI: Final = "/noctaya/openapi.json"
PATH_ACTIVATIONS: Final = "/noctaya/activations"
PATH_DEMAND: Final = "/v1/demand"
PATH_BACKEND_HEALTH: Final = "/health"
PATH_PROGRESS: Final = "/progress"

# Headers
HEADER_COLD_START: Final = "x-noctaya-cold-start"
HEADER_WAIT_SECONDS: Final = "x-noctaya-wait-seconds"
HEADER_ACTIVATION_ID: Final = "x-noctaya-activation-id"
# Form of its value: that of a W3C trace id
ACTIVATION_ID: Final = "^[0-9a-f]{32}$"
HEADER_HEARTBEATS: Final = "x-noctaya-heartbeats"
HEADER_PROGRESS: Final = "x-noctaya-progress"
HEADER_REQUEST_ID: Final = "x-request-id"

# Containers and the paths inside them
CONTAINER_SERVING: Final = "serving"
CONTAINER_GATEWAY: Final = "gateway"
CONTAINER_SCALER: Final = "scaler"
CONTAINER_PREWARM: Final = "prewarm"
CONTAINER_WAIT_FOR_PREWARM: Final = "wait-for-prewarm"
CONTAINER_FETCH_OCI_MANIFEST: Final = "fetch-oci-manifest"
CONTAINER_PULL_PROGRESS: Final = "pull-progress"
CONTAINER_PULL_OCI_MODEL: Final = "pull-oci-model"
CONTAINER_REGISTRY_AUTH: Final = "registry-auth"
CACHE_MOUNT: Final = "/cache"
MODELS_MOUNT: Final = "/models"
OCI_CACHE_DIR: Final = "/cache/oci"
PREWARMED_DIR: Final = "/cache/models"
READY_MARKER: Final = ".noctaya-ready"
HOST_PATH_CACHE_ROOT: Final = "/var/lib/noctaya/cache"
CLIENT_AUTH_DIR: Final = "/var/run/noctaya/client-auth"
DEMAND_AUTH_DIR: Final = "/var/run/noctaya/demand-auth"
SCALER_TLS_DIR: Final = "/var/run/noctaya/scaler-tls"
TRACES_DIR: Final = "/var/run/noctaya/traces"
TRACES_HEADERS_KEY: Final = "headers"
REGISTRY_AUTH_DIR: Final = "/var/run/noctaya/registry-auth"
REGISTRY_LOGIN_DIR: Final = "/var/run/noctaya/registry-login"
MODEL_SECRET_DIR: Final = "/var/run/noctaya/model-secret"  # noqa: S105  a directory
MODEL_TOKEN_KEY: Final = "token"  # noqa: S105  the name of a Secret key, not a secret
MODEL_CA_KEY: Final = "ca.crt"
ACTIVATION_FAILURE_DIR: Final = "/var/run/noctaya/activation"
ACTIVATION_FAILURE_FILE_NAME: Final = "failure"
PREWARMING_FILE_NAME: Final = "prewarming"
# States of a notice in that file that is not about a download: the service is put to sleep, and there are no
# weights because their download failed
NOTICE_ASLEEP: Final = "asleep"
NOTICE_FAILED: Final = "failed"
STAGING_MOUNT: Final = "/staging/model"
HF_CACHE_DIR: Final = "/cache/hf"
MODELSCOPE_CACHE_DIR: Final = "/cache/modelscope"
CLIENT_API_KEY_FILE_NAME: Final = "api-key"
DEMAND_TOKEN_KEY: Final = "token"  # noqa: S105  the name of a Secret key, not a secret

# ExternalScaler
SCALER_METRIC: Final = "pending"
SCALER_METADATA_METRIC_NAME: Final = "metricName"
SCALER_METADATA_TARGET_VALUE: Final = "targetValue"

# Environment of the gateway
ENV_BACKEND_URL: Final = "NOCTAYA_BACKEND_URL"
ENV_LISTEN_ADDR: Final = "NOCTAYA_LISTEN_ADDR"
ENV_MAX_QUEUE: Final = "NOCTAYA_MAX_QUEUE"
ENV_ACTIVATION_TIMEOUT: Final = "NOCTAYA_ACTIVATION_TIMEOUT"
ENV_COLDSTART_MODE: Final = "NOCTAYA_COLDSTART_MODE"
ENV_HEARTBEAT_INTERVAL: Final = "NOCTAYA_HEARTBEAT_INTERVAL"
ENV_HEARTBEATS: Final = "NOCTAYA_HEARTBEATS"
ENV_PROGRESS: Final = "NOCTAYA_PROGRESS"
ENV_CLIENT_API_KEY_FILE: Final = "NOCTAYA_CLIENT_API_KEY_FILE"
ENV_KEY_REQUESTS_PER_MINUTE: Final = "NOCTAYA_KEY_REQUESTS_PER_MINUTE"
ENV_KEY_CONCURRENT_REQUESTS: Final = "NOCTAYA_KEY_CONCURRENT_REQUESTS"
ENV_ACCESS_LOG: Final = "NOCTAYA_ACCESS_LOG"
ENV_DEMAND_AGGREGATOR_URL: Final = "NOCTAYA_DEMAND_AGGREGATOR_URL"
ENV_GATEWAY_ID: Final = "NOCTAYA_GATEWAY_ID"
ENV_SERVICE_NAME: Final = "NOCTAYA_SERVICE_NAME"
ENV_MODEL_IDS: Final = "NOCTAYA_MODEL_IDS"
ENV_HEALTH_PATH: Final = "NOCTAYA_HEALTH_PATH"
ENV_BACKEND_ENDPOINTS: Final = "NOCTAYA_BACKEND_ENDPOINTS"
ENV_PROBE_INTERVAL: Final = "NOCTAYA_PROBE_INTERVAL"
ENV_PROBE_FAST_INTERVAL: Final = "NOCTAYA_PROBE_FAST_INTERVAL"
ENV_PROBE_TIMEOUT: Final = "NOCTAYA_PROBE_TIMEOUT"
ENV_PROBE_RISE: Final = "NOCTAYA_PROBE_RISE"
ENV_PROBE_FALL: Final = "NOCTAYA_PROBE_FALL"
ENV_MAX_BODY_BYTES: Final = "NOCTAYA_MAX_BODY_BYTES"
ENV_MAX_BUFFERED_BYTES: Final = "NOCTAYA_MAX_BUFFERED_BYTES"
ENV_BODY_TIMEOUT: Final = "NOCTAYA_BODY_TIMEOUT"
ENV_LAME_DUCK: Final = "NOCTAYA_LAME_DUCK"
ENV_DRAIN_TIMEOUT: Final = "NOCTAYA_DRAIN_TIMEOUT"
ENV_RELEASE_RATE: Final = "NOCTAYA_RELEASE_RATE"
ENV_READY_GRACE: Final = "NOCTAYA_READY_GRACE"
ENV_CORS_ORIGINS: Final = "NOCTAYA_CORS_ORIGINS"
ENV_ACTIVATION_FAILURE_FILE: Final = "NOCTAYA_ACTIVATION_FAILURE_FILE"
ENV_PREWARMING_FILE: Final = "NOCTAYA_PREWARMING_FILE"
ENV_HTTP_ENGINE: Final = "NOCTAYA_HTTP_ENGINE"
ENV_LOG_LEVEL: Final = "NOCTAYA_LOG_LEVEL"

# Environment that the gateway and the aggregate scaler share
ENV_SCALER_LISTEN_ADDR: Final = "NOCTAYA_SCALER_LISTEN_ADDR"
ENV_DEMAND_AUTH_TOKEN_FILE: Final = "NOCTAYA_DEMAND_AUTH_TOKEN_FILE"  # noqa: S105  a variable's name
ENV_SCALER_TLS_CERT_FILE: Final = "NOCTAYA_SCALER_TLS_CERT_FILE"
ENV_SCALER_TLS_KEY_FILE: Final = "NOCTAYA_SCALER_TLS_KEY_FILE"
ENV_SCALER_TLS_CLIENT_CA_FILE: Final = "NOCTAYA_SCALER_TLS_CLIENT_CA_FILE"

# Environment of everything that sends traces, beside the OTEL variables
ENV_TRACES_HEADERS_FILE: Final = "NOCTAYA_TRACES_HEADERS_FILE"

# Environment of the aggregate scaler
ENV_AGGREGATOR_LISTEN_ADDR: Final = "NOCTAYA_AGGREGATOR_LISTEN_ADDR"
ENV_MAX_GATEWAY_MEMBERS: Final = "NOCTAYA_MAX_GATEWAY_MEMBERS"
ENV_MAX_GATEWAY_DEMAND: Final = "NOCTAYA_MAX_GATEWAY_DEMAND"
ENV_EXPECTED_GATEWAY_MEMBERS: Final = "NOCTAYA_EXPECTED_GATEWAY_MEMBERS"

# Environment of serving and prewarm containers
ENV_HF_HOME: Final = "HF_HOME"
ENV_MODELSCOPE_CACHE: Final = "MODELSCOPE_CACHE"
ENV_USE_MODELSCOPE: Final = "VLLM_USE_MODELSCOPE"
ENV_HF_ENDPOINT: Final = "HF_ENDPOINT"
ENV_HF_TOKEN_PATH: Final = "HF_TOKEN_PATH"  # noqa: S105  a variable's name
ENV_HF_MODULES_CACHE: Final = "HF_MODULES_CACHE"
ENV_HF_OFFLINE: Final = "HF_HUB_OFFLINE"
ENV_TRANSFORMERS_OFFLINE: Final = "TRANSFORMERS_OFFLINE"
ENV_MODELSCOPE_OFFLINE: Final = "MODELSCOPE_OFFLINE"
ENV_MODELSCOPE_DOMAIN: Final = "MODELSCOPE_DOMAIN"

# Environment of the prewarm agent
ENV_PREWARM_SECRET_DIR: Final = "NOCTAYA_PREWARM_SECRET_DIR"  # noqa: S105  a variable's name
ENV_PREWARM_ENDPOINT: Final = "NOCTAYA_PREWARM_ENDPOINT"
ENV_PREWARM_REGION: Final = "NOCTAYA_PREWARM_REGION"
ENV_PREWARM_DEADLINE: Final = "NOCTAYA_PREWARM_DEADLINE"
ENV_PREWARM_CA_FILE: Final = "NOCTAYA_PREWARM_CA_FILE"
ENV_PREWARM_LISTEN_ADDR: Final = "NOCTAYA_PREWARM_LISTEN_ADDR"

# A Service name is a DNS label of at most 63 characters; the longest suffix is `-backend` or `-gateway`.
MAX_SERVICE_NAME_LENGTH: Final = 63
MAX_LLMSERVICE_NAME_LENGTH: Final = MAX_SERVICE_NAME_LENGTH - len("-backend")


def backend_service_name(service: str) -> str:
    """Name of the Service in front of the backend Pods."""
    return f"{service}-backend"


def backend_pods_service_name(service: str) -> str:
    """Name of the headless Service whose addresses are the backend Pods."""
    return f"{service}-pods"


def gateway_name(service: str) -> str:
    """Name of the gateway Deployment and its PodDisruptionBudget; the public Service has no suffix."""
    return f"{service}-gateway"


def scaler_name(service: str) -> str:
    """Name of the Service, and with several gateways of the Deployment, that answers KEDA."""
    return f"{service}-scaler"


def cache_claim_name(service: str) -> str:
    """Name of the PersistentVolumeClaim that holds the model cache."""
    return f"{service}-cache"


def prewarm_job_name(service: str) -> str:
    """Name of the one-time download Job."""
    return f"{service}-prewarm"


def demand_auth_secret_name(service: str) -> str:
    """Name of the Secret that holds the demand report token."""
    return f"{service}-demand-auth"


def endpoint_url(service: str, namespace: str) -> str:
    """URL under which clients inside the cluster reach the service."""
    return f"http://{service}.{namespace}.svc/v1"
