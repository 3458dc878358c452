{{/* The Pod of the Job, but for its name and labels. Takes the context. */}}
{{- define "noctaya-prewarm-agent.pod" -}}
{{- $job := .Values.job -}}
{{- $source := .Values.source -}}
{{- $staged := hasPrefix "oci://" $source.uri -}}
{{- $target := printf "/cache/%s" (include "noctaya-prewarm-agent.path" .) -}}
restartPolicy: OnFailure
automountServiceAccountToken: false
securityContext:
  {{- $context := include "noctaya-prewarm-agent.restrictedPod" . | fromYaml }}
  {{- toYaml (mergeOverwrite $context (dict "fsGroupChangePolicy" "OnRootMismatch") ($job.podSecurityContext | default dict)) | nindent 2 }}
{{- with include "noctaya-prewarm-agent.imagePullSecrets" . }}
{{ . }}
{{- end }}
{{- with include "noctaya-prewarm-agent.placement" (dict "values" $job "selector" (include "noctaya-prewarm-agent.podLabels" . | fromYaml)) }}
{{ . | trim }}
{{- end }}
{{- with $job.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $job.schedulerName }}
schedulerName: {{ . }}
{{- end }}
{{- if $staged }}
initContainers:
  {{- include "noctaya-prewarm-agent.pull" . | nindent 2 }}
{{- end }}
containers:
  - name: prewarm
    {{- include "noctaya-prewarm-agent.containerImage" (dict "root" . "name" .Values.image.prewarmAgent) | nindent 4 }}
    command: [noctaya-prewarm]
    args:
      {{- if $staged }}
      - stage
      - --from
      - /staging/model
      {{- else }}
      - download
      {{- end }}
      - --source
      - {{ $source.uri | quote }}
      - --target
      - {{ $target }}
      - --marker
      - {{ $target }}/.noctaya-ready
      {{- range $source.files.include }}
      - --include
      - {{ . | quote }}
      {{- end }}
      {{- range $source.files.exclude }}
      - --exclude
      - {{ . | quote }}
      {{- end }}
    {{- with include "noctaya-prewarm-agent.env" . | trim }}
    env:
      {{- . | nindent 6 }}
    {{- end }}
    ports:
      - name: http
        containerPort: 8080
        protocol: TCP
    {{- with $job.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    # A process that hangs is started anew, and resumes.
    livenessProbe:
      httpGet:
        path: /healthz
        port: 8080
      initialDelaySeconds: 10
      periodSeconds: 20
      timeoutSeconds: 5
      failureThreshold: 6
    securityContext:
      {{- include "noctaya-prewarm-agent.restrictedContainer" . | nindent 6 }}
    volumeMounts:
      - name: model-cache
        mountPath: /cache
      - name: tmp
        mountPath: /tmp
      {{- if $staged }}
      - name: oci-staging
        mountPath: /staging/model
        readOnly: true
      {{- else if $source.secretName }}
      - name: model-secret
        mountPath: /var/run/noctaya/model-secret
        readOnly: true
      {{- end }}
volumes:
  - name: model-cache
    persistentVolumeClaim:
      claimName: {{ .Values.claim.name }}
  - name: tmp
    emptyDir: {}
  {{- if $staged }}
  # An artifact that is larger ends the Pod, not the node.
  - name: oci-staging
    emptyDir:
      sizeLimit: {{ $job.stagingSize }}
  {{- with $source.secretName }}
  - name: oci-registry-auth
    secret:
      secretName: {{ . }}
      defaultMode: 0440
      items:
        - key: .dockerconfigjson
          path: config.json
  - name: oci-registry-ca
    secret:
      secretName: {{ . }}
      defaultMode: 0440
      items:
        - key: ca.crt
          path: ca.crt
      optional: true
  - name: oci-registry-login
    emptyDir:
      medium: Memory
      sizeLimit: 1Mi
  {{- end }}
  {{- else if $source.secretName }}
  - name: model-secret
    secret:
      secretName: {{ $source.secretName }}
      defaultMode: 0440
  {{- end }}
{{- end -}}

{{/* Environment of the agent. Takes the context. */}}
{{- define "noctaya-prewarm-agent.env" -}}
{{- $staged := hasPrefix "oci://" .Values.source.uri -}}
{{- if and .Values.source.secretName (not $staged) -}}
- name: NOCTAYA_PREWARM_SECRET_DIR
  value: /var/run/noctaya/model-secret
- name: NOCTAYA_PREWARM_CA_FILE
  value: /var/run/noctaya/model-secret/ca.crt
{{- end }}
{{- if and .Values.source.endpoint (not $staged) }}
- name: NOCTAYA_PREWARM_ENDPOINT
  value: {{ .Values.source.endpoint | quote }}
{{- end }}
{{- with .Values.source.region }}
- name: NOCTAYA_PREWARM_REGION
  value: {{ . | quote }}
{{- end }}
{{- with .Values.job.deadline }}
- name: NOCTAYA_PREWARM_DEADLINE
  value: {{ . }}
{{- end }}
{{- with .Values.job.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Containers that pull an OCI artifact into the scratch volume. Takes the context. */}}
{{- define "noctaya-prewarm-agent.pull" -}}
{{- $source := .Values.source -}}
{{- if $source.secretName -}}
- name: registry-auth
  {{- include "noctaya-prewarm-agent.containerImage" (dict "root" . "name" .Values.image.prewarmAgent) | nindent 2 }}
  command: [noctaya-prewarm]
  args:
    - registry-auth
    - --config
    - /var/run/noctaya/registry-auth/config.json
    - --source
    - {{ $source.uri | quote }}
    - --output
    - /var/run/noctaya/registry-login/config.json
  securityContext:
    {{- include "noctaya-prewarm-agent.restrictedContainer" . | nindent 4 }}
  volumeMounts:
    - name: oci-registry-auth
      mountPath: /var/run/noctaya/registry-auth
      readOnly: true
    - name: oci-registry-login
      mountPath: /var/run/noctaya/registry-login
{{ end -}}
{{- range $name := list "fetch-oci-manifest" "pull-oci-model" }}
{{- if eq $name "pull-oci-model" }}
# Beside the pull, which shows nobody how far it is.
- name: pull-progress
  {{- include "noctaya-prewarm-agent.containerImage" (dict "root" $ "name" $.Values.image.prewarmAgent) | nindent 2 }}
  restartPolicy: Always
  command: [noctaya-prewarm]
  args:
    - follow-pull
    - --layout
    - /staging/model
    - --manifest
    - /staging/model/.noctaya-manifest.json
  env:
    - name: NOCTAYA_PREWARM_LISTEN_ADDR
      value: ":8081"
  ports:
    - name: pull
      containerPort: 8081
      protocol: TCP
  securityContext:
    {{- include "noctaya-prewarm-agent.restrictedContainer" $ | nindent 4 }}
  volumeMounts:
    - name: oci-staging
      mountPath: /staging/model
      readOnly: true
{{- end }}
- name: {{ $name }}
  {{- include "noctaya-prewarm-agent.containerImage" (dict "root" $ "name" $.Values.image.oras) | nindent 2 }}
  args:
    {{- if eq $name "pull-oci-model" }}
    - cp
    - --no-tty
    - --to-oci-layout
    - {{ trimPrefix "oci://" $source.uri | quote }}
    - /staging/model:artifact
    {{- else }}
    - manifest
    - fetch
    - --output
    - /staging/model/.noctaya-manifest.json
    - {{ trimPrefix "oci://" $source.uri | quote }}
    {{- end }}
    {{- $from := ternary "--from-" "--" (eq $name "pull-oci-model") }}
    {{- if $source.endpoint }}
    - {{ $from }}plain-http
    {{- end }}
    {{- if $source.secretName }}
    - {{ $from }}registry-config
    - /var/run/noctaya/registry-login/config.json
    {{- end }}
  env:
    # It asks for it and writes nothing there.
    - name: HOME
      value: /
    {{- if $source.secretName }}
    # Trusted besides the system's authorities; a file that is missing does no harm.
    - name: SSL_CERT_FILE
      value: /var/run/noctaya/registry-ca/ca.crt
    {{- end }}
  terminationMessagePolicy: FallbackToLogsOnError
  securityContext:
    {{- include "noctaya-prewarm-agent.restrictedContainer" $ | nindent 4 }}
  volumeMounts:
    - name: oci-staging
      mountPath: /staging/model
    {{- if $source.secretName }}
    - name: oci-registry-login
      mountPath: /var/run/noctaya/registry-login
      readOnly: true
    - name: oci-registry-ca
      mountPath: /var/run/noctaya/registry-ca
      readOnly: true
    {{- end }}
{{- end }}
{{- end -}}

{{/* Labels of the Pod. Takes the context. */}}
{{- define "noctaya-prewarm-agent.podLabels" -}}
app.kubernetes.io/name: {{ include "noctaya-prewarm-agent.service" . }}-prewarm
app.kubernetes.io/managed-by: noctaya
{{- end -}}
