{{- define "kumo.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "kumo.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kumo.labels" -}}
{{ include "kumo.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kumo.secretName" -}}
{{- .Values.secret.existingSecret | default (printf "%s-cluster" (include "kumo.name" .)) }}
{{- end }}

{{- define "kumo.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "kumo.name" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{/* The host names of the servers, in the namespace's domain. */}}
{{- define "kumo.domain" -}}
{{ include "kumo.name" . }}-servers.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "kumo.join" -}}
{{- $all := list }}
{{- range $i := until (int .Values.servers.replicas) }}
{{- $all = append $all (printf "%s-server-%d.%s:7070" (include "kumo.name" $) $i (include "kumo.domain" $)) }}
{{- end }}
{{- join "," $all }}
{{- end }}

{{/* The container and the rest of a pod. Arguments: root, of (servers or nodes), server (bool). */}}
{{- define "kumo.pod" -}}
{{- $r := .root }}
serviceAccountName: {{ include "kumo.serviceAccount" $r }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $r.Values.terminationGracePeriodSeconds }}
{{- with $r.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
containers:
  - name: kumo
    image: "{{ $r.Values.image.repository }}:{{ $r.Values.image.tag | default $r.Chart.AppVersion }}"
    imagePullPolicy: {{ $r.Values.image.pullPolicy }}
    # SIGTERM makes the node hand over its hosts and leave: a preStop hook is not needed.
    # Flags of the node are arguments: the environment also applies to commands in the pod, such as kumo status.
    args:
      - node
      - --name=$(POD_NAME)
      {{- if .server }}
      - --servers={{ $r.Values.servers.replicas }}
      - --listen=$(POD_NAME).{{ include "kumo.domain" $r }}:7070
      {{- end }}
      {{- if $r.Values.place }}
      - --out={{ $r.Values.place }}
      - --work=/crawls/node
      - --keep-local=false
      {{- else }}
      - --out=/crawls/node
      {{- end }}
      - --metrics=:9090
      - --log-json
      {{- range .of.args }}
      - {{ . | quote }}
      {{- end }}
    env:
      - name: POD_NAME
        valueFrom: {fieldRef: {fieldPath: metadata.name}}
      - {name: KUMO_CRAWL, value: {{ $r.Values.crawl | quote }}}
      - {name: KUMO_JOIN, value: {{ include "kumo.join" $r | quote }}}
      - name: KUMO_SECRET
        valueFrom: {secretKeyRef: {name: {{ include "kumo.secretName" $r }}, key: secret}}
      {{- with $r.Values.env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with $r.Values.envFrom }}
    envFrom: {{ toYaml . | nindent 6 }}
    {{- end }}
    ports:
      - {name: metrics, containerPort: 9090}
      {{- if .server }}
      - {name: nodes, containerPort: 7070}
      - {name: servers, containerPort: 7071}
      {{- end }}
    startupProbe:
      httpGet: {path: /healthz, port: metrics}
      periodSeconds: 2
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /healthz, port: metrics}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 3
    readinessProbe:
      httpGet: {path: /readyz, port: metrics}
      periodSeconds: 5
      timeoutSeconds: 5
      failureThreshold: 2
    resources: {{ toYaml .of.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
      - {name: crawls, mountPath: /crawls}
      - {name: tmp, mountPath: /tmp}
{{- with .of.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "kumo.claim" -}}
- metadata: {name: crawls}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .className }}
    storageClassName: {{ . }}
    {{- end }}
    resources: {requests: {storage: {{ .size }}}}
{{- end }}

{{/* Seconds of a duration such as 15m. */}}
{{- define "kumo.seconds" -}}
{{- $n := regexFind "^[0-9]+" . | int }}
{{- $unit := regexFind "[smhd]$" . }}
{{- mul $n (get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) $unit) }}
{{- end }}
