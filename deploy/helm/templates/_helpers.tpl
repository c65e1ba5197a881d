{{/* Name of the release's objects. At most 40 characters, so that suffixes fit. */}}
{{- define "pilothouse.name" -}}
{{- .Values.nameOverride | default (ternary .Release.Name (printf "%s-pilothouse" .Release.Name) (contains "pilothouse" .Release.Name)) | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "pilothouse.workerNamespace" -}}
{{- .Values.workers.namespace | default (printf "%s-workers" .Release.Namespace) -}}
{{- end }}

{{- define "pilothouse.seccompNamespace" -}}
{{- .Values.seccomp.namespace | default (printf "%s-seccomp" .Release.Namespace) -}}
{{- end }}

{{/* Labels that select a component. Arguments: root, component. */}}
{{- define "pilothouse.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: pilothouse
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "pilothouse.labels" -}}
{{- $root := index . 0 -}}
{{ include "pilothouse.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{/* Arguments: root, name of an image in values. */}}
{{- define "pilothouse.image" -}}
{{- $root := index . 0 -}}
{{- $name := printf "%s:%s" (index $root.Values.image (index . 1)) ($root.Values.image.tag | default $root.Chart.AppVersion) -}}
{{- if $root.Values.image.registry }}{{ $root.Values.image.registry }}/{{ end }}{{ $name -}}
{{- end }}

{{- define "pilothouse.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Fields of all pods. Variables of Services are off: a Service `fleet` would set FLEET_PORT. */}}
{{- define "pilothouse.pod" -}}
enableServiceLinks: false
{{- include "pilothouse.pullSecrets" . }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "pilothouse.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Name of the Secret of gateways and control processes. */}}
{{- define "pilothouse.secret" -}}
{{- .Values.secrets.existingSecret | default (include "pilothouse.name" .) -}}
{{- end }}

{{- define "pilothouse.workerSecret" -}}
{{- .Values.workers.existingSecret | default (include "pilothouse.name" .) -}}
{{- end }}

{{/* Variables from the Secret. Arguments: root, required variables, whether the optional ones are set, too. */}}
{{- define "pilothouse.secretVariables" -}}
{{- $root := index . 0 -}}
{{- $secret := include "pilothouse.secret" $root -}}
{{- $optional := ternary $root.Values.secrets.optional list (index . 2) -}}
{{- range concat (index . 1) $optional }}
{{- if $root.Values.secrets.asFiles }}
- { name: {{ . }}_FILE, value: /run/secrets/pilothouse/{{ . }} }
{{- else }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ . }}{{ if has . $optional }}, optional: true{{ end }} } }
{{- end }}
{{- end }}
{{- end }}

{{/* Volume with the same secrets as files, and its mount. */}}
{{- define "pilothouse.secretVolume" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.secrets.asFiles }}
- name: secrets
  secret:
    secretName: {{ include "pilothouse.secret" $root }}
    items:
      {{- range concat (index . 1) (ternary $root.Values.secrets.optional list (index . 2)) }}
      - { key: {{ . }}, path: {{ . }} }
      {{- end }}
{{- end }}
{{- end }}

{{- define "pilothouse.secretMount" -}}
{{- if .Values.secrets.asFiles }}
- { name: secrets, mountPath: /run/secrets/pilothouse, readOnly: true }
{{- end }}
{{- end }}

{{/* Values of a pool over those of `defaults`, as JSON. Arguments: root, values of the pool. */}}
{{- define "pilothouse.pool" -}}
{{- $root := index . 0 -}}
{{- mergeOverwrite (deepCopy $root.Values.workers.defaults) (index . 1 | default dict) | toJson -}}
{{- end }}

{{/* File below the kubelet's directory of profiles. Named by release, so that a rollback finds its own. */}}
{{- define "pilothouse.profile" -}}
{{- .Values.seccomp.profile | default (printf "pilothouse/%s.json" .Chart.AppVersion) -}}
{{- end }}

{{- define "pilothouse.checksum" -}}
checksum/config: {{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}
{{- end }}

{{- define "pilothouse.hasKeda" -}}
{{- if .Capabilities.APIVersions.Has "keda.sh/v1alpha1/ScaledObject" }}true{{ end -}}
{{- end }}
