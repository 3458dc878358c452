{{/*
Shared by the charts of single components; edit charts/shared/_component.tpl, then `python -m noctaya_charts write`. What they render for a
component is what the operator renders, object by object; tests compare the two.
*/}}

{{/* Name of the service: everything else is called after it. Takes the context. */}}
{{- define "noctaya-aggregate-scaler.service" -}}
{{- .Values.name | default .Release.Name -}}
{{- end -}}

{{/* Labels by which the Pods of a component are found. Takes service and component (gateway or scaler). */}}
{{- define "noctaya-aggregate-scaler.selector" -}}
app.kubernetes.io/name: {{ .service }}-{{ .component }}
app.kubernetes.io/managed-by: noctaya
serving.noctaya.io/{{ .component }}: {{ .service }}
{{- end -}}

{{/* Frame of an object. Takes root, name, and labels and annotations where there are any. */}}
{{- define "noctaya-aggregate-scaler.metadata" -}}
{{- $made := include "noctaya-aggregate-scaler.madeBy" .root | fromYaml -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- toYaml (merge dict $made (.labels | default dict) (.root.Values.commonLabels | default dict)) | nindent 2 }}
{{- with include "noctaya-aggregate-scaler.annotations" (list .annotations .root.Values.commonAnnotations) }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of Pods. Takes root, labels and values (of the component). */}}
{{- define "noctaya-aggregate-scaler.podMetadata" -}}
labels:
  {{- toYaml (merge dict .labels (.values.podLabels | default dict) (.root.Values.commonLabels | default dict)) | nindent 2 }}
{{- with include "noctaya-aggregate-scaler.annotations" (list .values.podAnnotations .root.Values.commonAnnotations) }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Security context of a Pod whose containers are all ours: `restricted` Pod Security. */}}
{{- define "noctaya-aggregate-scaler.restrictedPod" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Image and pull policy of a container. Takes root and name. */}}
{{- define "noctaya-aggregate-scaler.containerImage" -}}
image: {{ include "noctaya-aggregate-scaler.image" . | quote }}
{{- with .root.Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}

{{/* A new Pod is ready before an old one goes, with one replica too. */}}
{{- define "noctaya-aggregate-scaler.neverWithout" -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: 25%
  maxUnavailable: 0
{{- end -}}

{{/* Whole seconds of a Go duration, rounded up. */}}
{{- define "noctaya-aggregate-scaler.seconds" -}}
{{- $zero := toDate "2006-01-02" "2000-01-01" -}}
{{- $end := mustDateModify . $zero | mustDateModify "999999999ns" -}}
{{- sub (unixEpoch $end | int64) (unixEpoch $zero | int64) -}}
{{- end -}}

{{/* Environment that the user adds, and that of traces. Takes root and values (of the component). */}}
{{- define "noctaya-aggregate-scaler.moreEnv" -}}
{{- with .values.logLevel -}}
{{- if ne . "info" }}
- name: {{ $.levelVariable | default "NOCTAYA_LOG_LEVEL" }}
  value: {{ . }}
{{- end }}
{{- end }}
{{- with include "noctaya-aggregate-scaler.tracing" .root }}
{{ . }}
{{- end }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
