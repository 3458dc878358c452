{{/* What the schema can't say about values: combinations. */}}
{{- define "noctaya.checks" -}}
{{- $operator := .Values.operator -}}
{{- if and (gt (int64 $operator.replicas) 1) (not $operator.leaderElect) -}}
{{- fail "operator.leaderElect must be true when operator.replicas is above 1: otherwise several operators write at once. Set operator.replicas=1 or operator.leaderElect=true." -}}
{{- end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.name is required when serviceAccount.create is false: name the ServiceAccount that the operator runs as." -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled=true: there would be nothing to scrape." -}}
{{- end -}}
{{- $own := list "--leader-elect" "--health-probe-bind-address" "--metrics-bind-address" "--gateway-image" "--aggregate-scaler-image" "--prewarm-image" "--oras-image" "--gateway-replicas" "--workers" "--namespaces" "--log-level" "--traces-headers-secret" -}}
{{- range $operator.extraArgs -}}
{{- $flag := first (splitList "=" .) -}}
{{- if has $flag $own -}}
{{- fail (printf "operator.extraArgs must not hold %s: the chart has a value for it." $flag) -}}
{{- end -}}
{{- end -}}
{{- end -}}
