{{/*
What carries demand to KEDA: token, aggregate scaler, ScaledObject. Shared by the charts gateway and aggregate-scaler; edit
charts/shared/_demand.tpl, then `python -m noctaya_charts write`.
*/}}

{{/* Name of the Secret with the token of demand reports. Takes the context. */}}
{{- define "noctaya-gateway.demandSecret" -}}
{{- .Values.demandAuth.existingSecret | default (printf "%s-demand-auth" (include "noctaya-gateway.service" .)) -}}
{{- end -}}

{{/* The Secret, if it is ours to make. A token that is there stays, where the cluster can be asked. Takes the context. */}}
{{- define "noctaya-gateway.demandSecretObject" -}}
{{- if not .Values.demandAuth.existingSecret -}}
{{- $name := include "noctaya-gateway.demandSecret" . -}}
{{- $service := include "noctaya-gateway.service" . -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace $name | default dict -}}
{{- $token := dig "data" "token" "" $there | default (randAlphaNum 43 | b64enc) -}}
apiVersion: v1
kind: Secret
metadata:
  {{- include "noctaya-gateway.metadata" (dict "root" . "name" $name "labels" (dict "app.kubernetes.io/name" $service "serving.noctaya.io/llmservice" $service)) | nindent 2 }}
type: Opaque
data:
  token: {{ $token }}
{{- end -}}
{{- end -}}

{{- define "noctaya-gateway.demandVolume" -}}
- name: demand-auth
  secret:
    secretName: {{ include "noctaya-gateway.demandSecret" . }}
    defaultMode: 0440
{{- end -}}

{{- define "noctaya-gateway.demandMount" -}}
- name: demand-auth
  mountPath: /var/run/noctaya/demand-auth
  readOnly: true
{{- end -}}

{{- define "noctaya-gateway.demandEnv" -}}
- name: NOCTAYA_DEMAND_AUTH_TOKEN_FILE
  value: /var/run/noctaya/demand-auth/token
{{- end -}}

{{/* TLS of the gRPC server that KEDA dials, if there is any. Each takes the context. */}}
{{- define "noctaya-gateway.tlsVolume" -}}
{{- with .Values.tls.serverSecret -}}
- name: external-scaler-tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end -}}
{{- end -}}

{{- define "noctaya-gateway.tlsMount" -}}
{{- if .Values.tls.serverSecret -}}
- name: external-scaler-tls
  mountPath: /var/run/noctaya/scaler-tls
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "noctaya-gateway.tlsEnv" -}}
{{- if .Values.tls.serverSecret -}}
- name: NOCTAYA_SCALER_TLS_CERT_FILE
  value: /var/run/noctaya/scaler-tls/tls.crt
- name: NOCTAYA_SCALER_TLS_KEY_FILE
  value: /var/run/noctaya/scaler-tls/tls.key
- name: NOCTAYA_SCALER_TLS_CLIENT_CA_FILE
  value: /var/run/noctaya/scaler-tls/ca.crt
{{- end -}}
{{- end -}}

{{/* The aggregate scaler's Deployment. Takes root, values (of the component), image, gateways and maxQueue. */}}
{{- define "noctaya-gateway.scalerDeployment" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $service := include "noctaya-gateway.service" $root -}}
{{- $selector := include "noctaya-gateway.selector" (dict "service" $service "component" "scaler") | fromYaml -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "noctaya-gateway.metadata" (dict "root" $root "name" (printf "%s-scaler" $service) "labels" $selector "annotations" $values.annotations) | nindent 2 }}
spec:
  replicas: 1
  selector:
    matchLabels:
      {{- toYaml $selector | nindent 6 }}
  strategy:
    {{- include "noctaya-gateway.neverWithout" . | nindent 4 }}
  template:
    metadata:
      {{- include "noctaya-gateway.podMetadata" (dict "root" $root "labels" $selector "values" $values) | nindent 6 }}
    spec:
      automountServiceAccountToken: false
      securityContext:
        {{- include "noctaya-gateway.restrictedPod" . | nindent 8 }}
      {{- with include "noctaya-gateway.imagePullSecrets" $root }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with include "noctaya-gateway.placement" (dict "values" $values "selector" $selector) }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: scaler
          {{- include "noctaya-gateway.containerImage" (dict "root" $root "name" .image) | nindent 10 }}
          env:
            - name: NOCTAYA_AGGREGATOR_LISTEN_ADDR
              value: ":9091"
            - name: NOCTAYA_SCALER_LISTEN_ADDR
              value: ":9090"
            # Rollouts and restarts leave former members behind until they expire.
            - name: NOCTAYA_MAX_GATEWAY_MEMBERS
              value: {{ max 16 (mul 4 (int64 .gateways)) | quote }}
            - name: NOCTAYA_MAX_GATEWAY_DEMAND
              value: {{ int64 .maxQueue | quote }}
            - name: NOCTAYA_EXPECTED_GATEWAY_MEMBERS
              value: {{ int64 .gateways | quote }}
            {{- include "noctaya-gateway.demandEnv" $root | nindent 12 }}
            {{- with include "noctaya-gateway.tlsEnv" $root }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with include "noctaya-gateway.moreEnv" (dict "root" $root "values" $values) | trim }}
            {{- . | nindent 12 }}
            {{- end }}
          ports:
            - name: grpc
              containerPort: 9090
              protocol: TCP
            - name: http
              containerPort: 9091
              protocol: TCP
          {{- with $values.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          readinessProbe:
            httpGet:
              path: /readyz
              port: 9091
            periodSeconds: 2
            timeoutSeconds: 2
          livenessProbe:
            httpGet:
              path: /healthz
              port: 9091
            timeoutSeconds: 5
          securityContext:
            {{- include "noctaya-gateway.restrictedContainer" . | nindent 12 }}
          volumeMounts:
            {{- include "noctaya-gateway.demandMount" $root | nindent 12 }}
            {{- with include "noctaya-gateway.tlsMount" $root }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with include "noctaya-gateway.tracesMount" $root }}
            {{- . | nindent 12 }}
            {{- end }}
      terminationGracePeriodSeconds: 30
      volumes:
        {{- include "noctaya-gateway.demandVolume" $root | nindent 8 }}
        {{- with include "noctaya-gateway.tlsVolume" $root }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with include "noctaya-gateway.tracesVolume" $root }}
        {{- . | nindent 8 }}
        {{- end }}
{{- end -}}

{{/* The Service that KEDA dials. Takes root, component (whose Pods answer) and aggregated (whether gateways report there). */}}
{{- define "noctaya-gateway.scalerService" -}}
{{- $service := include "noctaya-gateway.service" .root -}}
{{- $labels := merge (include "noctaya-gateway.selector" (dict "service" $service "component" .labelled) | fromYaml) (dict "serving.noctaya.io/llmservice" $service) -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "noctaya-gateway.metadata" (dict "root" .root "name" (printf "%s-scaler" $service) "labels" $labels) | nindent 2 }}
spec:
  type: ClusterIP
  selector:
    {{- include "noctaya-gateway.selector" (dict "service" $service "component" .component) | nindent 4 }}
  ports:
    - name: grpc
      port: 9090
      targetPort: 9090
      protocol: TCP
    {{- if .aggregated }}
    - name: http
      port: 9091
      targetPort: 9091
      protocol: TCP
    {{- end }}
{{- end -}}

{{/* What KEDA is asked to do. Takes root. */}}
{{- define "noctaya-gateway.scaledObject" -}}
{{- $service := include "noctaya-gateway.service" .root -}}
{{- $scaling := .root.Values.scaling -}}
{{- $cooldown := include "noctaya-gateway.seconds" $scaling.scaleDownStabilization | int64 -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "noctaya-gateway.metadata" (dict "root" .root "name" $service "labels" (dict "app.kubernetes.io/name" $service "serving.noctaya.io/llmservice" $service) "annotations" $scaling.annotations) | nindent 2 }}
spec:
  scaleTargetRef:
    name: {{ .target.name }}
    {{- if ne .target.kind "Deployment" }}
    apiVersion: apps/v1
    kind: {{ .target.kind }}
    {{- end }}
  minReplicaCount: {{ int64 $scaling.min }}
  maxReplicaCount: {{ int64 $scaling.max }}
  pollingInterval: 5
  cooldownPeriod: {{ $cooldown }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleDown:
          stabilizationWindowSeconds: {{ $cooldown }}
  triggers:
    - type: external-push
      metadata:
        scalerAddress: {{ printf "%s-scaler.%s.svc:9090" $service .root.Release.Namespace }}
        metricName: pending
        targetValue: {{ int64 $scaling.target | quote }}
      {{- with .root.Values.tls }}
      {{- if .serverSecret }}
      authenticationRef:
        name: {{ .authenticationRef.name }}
        kind: {{ .authenticationRef.kind }}
      {{- end }}
      {{- end }}
{{- end -}}

{{/* What the schema can't say of scaling and TLS. Takes the context. */}}
{{- define "noctaya-gateway.demandChecks" -}}
{{- with .Values.scaling -}}
{{- if and .enabled (gt (int64 .min) (int64 .max)) -}}
{{- fail (printf "scaling.min (%d) must not be above scaling.max (%d)." (int64 .min) (int64 .max)) -}}
{{- end -}}
{{- if gt (include "noctaya-gateway.seconds" .scaleDownStabilization | int64) 3600 -}}
{{- fail "scaling.scaleDownStabilization must be at most 1h: Kubernetes allows no longer window." -}}
{{- end -}}
{{- end -}}
{{- with .Values.tls -}}
{{- if and .authenticationRef.name (not .serverSecret) -}}
{{- fail "tls.serverSecret is required with tls.authenticationRef: name the Secret with tls.crt, tls.key and ca.crt." -}}
{{- end -}}
{{- if and $.Values.scaling.enabled .serverSecret (not .authenticationRef.name) -}}
{{- fail "tls.authenticationRef.name is required with tls.serverSecret: name the TriggerAuthentication with KEDA's certificate, without which it is refused." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Rule of a NetworkPolicy: KEDA may reach the gRPC port. Takes the values below networkPolicy. */}}
{{- define "noctaya-gateway.fromKeda" -}}
- ports:
    - port: 9090
      protocol: TCP
  from:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: {{ .kedaNamespace }}
      podSelector:
        matchLabels:
          {{- toYaml .kedaPodLabels | nindent 10 }}
{{- end -}}
