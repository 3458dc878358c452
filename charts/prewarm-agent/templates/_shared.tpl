{{/*
Shared by all charts of Noctaya. Edit charts/shared/_shared.tpl, then `python -m noctaya_charts write` copies it into each chart,
so that each installs from a checkout without fetching dependencies.
*/}}

{{/* The reference of an image. Takes root (the context) and name (a value below `image`). */}}
{{- define "noctaya-prewarm-agent.image" -}}
{{- $image := .root.Values.image -}}
{{- $reference := .name -}}
{{- $parts := splitList "/" $reference -}}
{{- if not (or (contains "@" $reference) (contains ":" (last $parts))) -}}
{{- $reference = printf "%s:%s" $reference (toString ($image.tag | default .root.Chart.AppVersion)) -}}
{{- end -}}
{{- if and $image.registry (ne "true" (include "noctaya-prewarm-agent.startsWithHost" $reference)) -}}
{{- $reference = printf "%s/%s" (trimSuffix "/" $image.registry) $reference -}}
{{- end -}}
{{- with (.root.Values.global).imageRegistry -}}
{{- if eq "true" (include "noctaya-prewarm-agent.startsWithHost" $reference) -}}
{{- $reference = join "/" (rest (splitList "/" $reference)) -}}
{{- end -}}
{{- $reference = printf "%s/%s" (trimSuffix "/" .) $reference -}}
{{- end -}}
{{- $reference -}}
{{- end -}}

{{/* Whether the first part of an image's path is a registry's host, by Docker's own rule. */}}
{{- define "noctaya-prewarm-agent.startsWithHost" -}}
{{- $parts := splitList "/" . -}}
{{- $first := first $parts -}}
{{- and (gt (len $parts) 1) (or (contains "." $first) (contains ":" $first) (eq "localhost" $first)) -}}
{{- end -}}

{{/* imagePullSecrets of a Pod, those of `global` first, each once. Takes the context. */}}
{{- define "noctaya-prewarm-agent.imagePullSecrets" -}}
{{- $names := list -}}
{{- range concat ((.Values.global).imagePullSecrets | default list) (.Values.imagePullSecrets | default list) -}}
{{- $names = append $names (kindIs "string" . | ternary . (get (kindIs "map" . | ternary . dict) "name")) -}}
{{- end -}}
{{- with uniq $names -}}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Environment of traces. Takes the context. */}}
{{- define "noctaya-prewarm-agent.tracing" -}}
{{- with .Values.tracing -}}
{{- if .endpoint -}}
{{- if .headersSecret -}}
- name: NOCTAYA_TRACES_HEADERS_FILE
  value: /var/run/noctaya/traces/headers
{{ end -}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
{{- with .resourceAttributes }}
{{- $pairs := list -}}
{{- range $name, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" $name $value) -}}
{{- end }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: {{ join "," $pairs | quote }}
{{- end }}
{{- if ne 1.0 (float64 .samplingRatio) }}
- name: OTEL_TRACES_SAMPLER
  value: parentbased_traceidratio
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .samplingRatio | quote }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Headers for the collector of traces: volume and mount, if there are any. Each takes the context. */}}
{{- define "noctaya-prewarm-agent.tracesVolume" -}}
{{- with .Values.tracing -}}
{{- if and .endpoint .headersSecret -}}
- name: traces-headers
  secret:
    secretName: {{ .headersSecret }}
    defaultMode: 0440
    items:
      - key: headers
        path: headers
    optional: true
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "noctaya-prewarm-agent.tracesMount" -}}
{{- with .Values.tracing -}}
{{- if and .endpoint .headersSecret -}}
- name: traces-headers
  mountPath: /var/run/noctaya/traces
  readOnly: true
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where Pods run. Takes values (with the fields of a Pod) and selector (labels of the Pods). */}}
{{- define "noctaya-prewarm-agent.placement" -}}
{{- $selector := .selector -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{- toYaml (merge dict . (dict "labelSelector" (dict "matchLabels" $selector))) | nindent 4 }}
  {{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Preference for different nodes. Takes labels of the Pods. */}}
{{- define "noctaya-prewarm-agent.spread" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        labelSelector:
          matchLabels:
            {{- toYaml . | nindent 12 }}
        topologyKey: kubernetes.io/hostname
{{- end -}}

{{/* What `restricted` Pod Security asks of a container. */}}
{{- define "noctaya-prewarm-agent.restrictedContainer" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Labels that say which chart made an object. Takes the context. */}}
{{- define "noctaya-prewarm-agent.madeBy" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: noctaya
{{- with .Chart.AppVersion }}
app.kubernetes.io/version: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Annotations, if there are any. Takes a list of mappings; earlier ones win. */}}
{{- define "noctaya-prewarm-agent.annotations" -}}
{{- $all := dict -}}
{{- range . -}}
{{- $all = merge $all (. | default dict) -}}
{{- end -}}
{{- with $all -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}
