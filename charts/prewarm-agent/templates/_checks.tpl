{{/* What the schema can't say about values: combinations. */}}
{{- define "noctaya-prewarm-agent.checks" -}}
{{- if not .Values.source.uri -}}
{{- fail "source.uri is required: what to bring, such as hf://org/name." -}}
{{- end -}}
{{- if not .Values.claim.name -}}
{{- fail "claim.name is required: the PersistentVolumeClaim that gets the weights." -}}
{{- end -}}
{{- $staged := hasPrefix "oci://" .Values.source.uri -}}
{{- if and $staged (not (regexMatch "^oci://[^/]+/[^@]+@sha256:[0-9a-f]{64}$" .Values.source.uri)) -}}
{{- fail (printf "source.uri must name an OCI artifact by its digest, oci://registry/name@sha256:<64 hex digits>, not %q: what a tag means may change." .Values.source.uri) -}}
{{- end -}}
{{- if and $staged (or .Values.source.files.include .Values.source.files.exclude) -}}
{{- fail "source.files is for hubs and buckets: an OCI artifact comes whole." -}}
{{- end -}}
{{- if and $staged .Values.source.endpoint (ne .Values.source.endpoint (printf "http://%s" (.Values.source.uri | trimPrefix "oci://" | splitList "/" | first))) -}}
{{- fail "source.endpoint of an oci:// source is for a registry without TLS and must be http:// and that registry." -}}
{{- end -}}
{{- if and .Values.source.region (not (hasPrefix "s3://" .Values.source.uri)) -}}
{{- fail "source.region is for s3:// sources." -}}
{{- end -}}
{{- end -}}

{{/* Directory below the claim's root. */}}
{{- define "noctaya-prewarm-agent.path" -}}
{{- $name := .Values.source.uri | splitList "://" | last | splitList "@" | first | trimSuffix "/" | splitList "/" | last -}}
{{- .Values.claim.path | default $name -}}
{{- end -}}
