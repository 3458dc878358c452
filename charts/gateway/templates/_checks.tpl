{{/* Whether an aggregate scaler of this release sums the demand of several gateways. Takes the context; "true" or "". */}}
{{- define "noctaya-gateway.aggregated" -}}
{{- if and (gt (int64 .Values.gateway.replicas) 1) (not .Values.aggregateScaler.url) -}}true{{- end -}}
{{- end -}}

{{/* What the schema can't say about values: combinations. */}}
{{- define "noctaya-gateway.checks" -}}
{{- include "noctaya-gateway.demandChecks" . -}}
{{- $backend := .Values.backend -}}
{{- if and $backend.url $backend.selector -}}
{{- fail "backend.url and backend.selector exclude each other: either a Service is there already, or the chart makes it for the Pods with those labels." -}}
{{- end -}}
{{- if not (or $backend.url $backend.selector) -}}
{{- fail "backend.selector or backend.url is required: the labels of the Pods that serve the model, or the address of a Service in front of them." -}}
{{- end -}}
{{- if and $backend.endpoints (not $backend.url) -}}
{{- fail "backend.endpoints belongs to backend.url: with backend.selector the gateway finds the Pods by itself." -}}
{{- end -}}
{{- if and .Values.scaling.enabled (not .Values.aggregateScaler.url) (not $backend.name) -}}
{{- fail "backend.name is required: the Deployment or StatefulSet that KEDA scales (or scaling.enabled=false)." -}}
{{- end -}}
{{- if and .Values.aggregateScaler.url (not .Values.demandAuth.existingSecret) -}}
{{- fail "demandAuth.existingSecret is required with aggregateScaler.url: the Secret with the token that this aggregate scaler takes." -}}
{{- end -}}
{{- if and .Values.authentication.secretName (not .Values.authentication.secretKey) -}}
{{- fail "authentication.secretKey is required with authentication.secretName: the key of the Secret that holds the API keys." -}}
{{- end -}}
{{- end -}}
