{{/* Names and labels. Selectors are those of the alpha's chart: they can't be changed after creation. */}}

{{- define "noctaya.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 63 characters, with room for the longest suffix where a DNS label is asked for. */}}
{{- define "noctaya.fullname" -}}
{{- $name := include "noctaya.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of the Deployment and of what belongs to it. */}}
{{- define "noctaya.manager" -}}
{{- printf "%s-controller-manager" (include "noctaya.fullname" . | trunc 44 | trimSuffix "-") -}}
{{- end -}}

{{- define "noctaya.metricsService" -}}
{{- printf "%s-metrics" (include "noctaya.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{- define "noctaya.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "noctaya.manager" .) -}}
{{- end -}}

{{- define "noctaya.selector" -}}
app.kubernetes.io/name: {{ include "noctaya.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller-manager
{{- end -}}

{{/* Labels of an object. Takes root (the context), and component or labels where there are any. */}}
{{- define "noctaya.labels" -}}
{{- $own := dict "app.kubernetes.io/name" (include "noctaya.name" .root) -}}
{{- with .component -}}
{{- $_ := set $own "app.kubernetes.io/component" . -}}
{{- end -}}
{{- $made := include "noctaya.madeBy" .root | fromYaml -}}
{{- toYaml (merge dict $own $made (.labels | default dict) (.root.Values.commonLabels | default dict)) -}}
{{- end -}}
