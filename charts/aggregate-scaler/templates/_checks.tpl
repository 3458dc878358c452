{{/* What the schema can't say about values: combinations. */}}
{{- define "noctaya-aggregate-scaler.checks" -}}
{{- include "noctaya-aggregate-scaler.demandChecks" . -}}
{{- if and .Values.scaling.enabled (not .Values.backend.name) -}}
{{- fail "backend.name is required: the Deployment or StatefulSet that KEDA scales (or scaling.enabled=false)." -}}
{{- end -}}
{{- end -}}
