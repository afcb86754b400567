{{- /* Name of the chart's objects that are not named after the release. */ -}}
{{- define "slurm-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* Name of the objects that are named after the release. */ -}}
{{- define "slurm-operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "slurm-operator.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "slurm-operator.webhook.name" -}}
{{- printf "%s-webhook" (include "slurm-operator.name" .) -}}
{{- end -}}

{{- /* Cluster-scoped objects of the webhook: two releases must not fight over them. */ -}}
{{- define "slurm-operator.webhook.fullname" -}}
{{- printf "%s-webhook" (include "slurm-operator.fullname" .) -}}
{{- end -}}

{{- /* Arguments: root, application name. */ -}}
{{- define "slurm-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ .app }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{- /* Arguments: root, application name. */ -}}
{{- define "slurm-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | quote }}
app.kubernetes.io/part-of: slurm-operator
{{ include "slurm-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end -}}

{{- define "slurm-operator.operator.labels" -}}
{{- include "slurm-operator.labels" (dict "root" . "app" (include "slurm-operator.name" .)) -}}
{{- end -}}

{{- define "slurm-operator.operator.selectorLabels" -}}
{{- include "slurm-operator.selectorLabels" (dict "root" . "app" (include "slurm-operator.name" .)) -}}
{{- end -}}

{{- define "slurm-operator.webhook.labels" -}}
{{- include "slurm-operator.labels" (dict "root" . "app" (include "slurm-operator.webhook.name" .)) -}}
{{- end -}}

{{- define "slurm-operator.webhook.selectorLabels" -}}
{{- include "slurm-operator.selectorLabels" (dict "root" . "app" (include "slurm-operator.webhook.name" .)) -}}
{{- end -}}

{{- /* Name of the operator's ServiceAccount, and of its roles when they are made. */ -}}
{{- define "slurm-operator.operator.account" -}}
{{- $account := .Values.operator.serviceAccount | default dict -}}
{{- $account.name | default (ternary (include "slurm-operator.fullname" .) "default" (eq $account.create true)) -}}
{{- end -}}

{{- define "slurm-operator.webhook.account" -}}
{{- $account := .Values.webhook.serviceAccount | default dict -}}
{{- $account.name | default (ternary (include "slurm-operator.webhook.name" .) "default" (eq $account.create true)) -}}
{{- end -}}

{{- /* Arguments: root, the image (text or object), what it is for. */ -}}
{{- define "slurm-operator.image" -}}
{{- if kindIs "string" .image -}}
{{- required (printf "%s.image is required" .component) .image -}}
{{- else -}}
{{- $image := .image | default dict -}}
{{- $repository := required (printf "%s.image.repository is required" .component) $image.repository -}}
{{- if $image.digest -}}
{{- print $repository "@" $image.digest -}}
{{- else -}}
{{- print $repository ":" ($image.tag | default .root.Chart.Version) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Port for metrics, or 0; fails on anything but a port. Arguments: the component's values and name. */ -}}
{{- define "slurm-operator.metricsPort" -}}
{{- $port := .values.metricsPort -}}
{{- $text := ternary "0" (print $port) (kindIs "invalid" $port) -}}
{{- if kindIs "float64" $port -}}{{- $text = printf "%.0f" $port -}}{{- end -}}
{{- if or (kindIs "bool" $port) (not (regexMatch "^(0|[1-9][0-9]{0,4})$" $text)) (gt (int $text) 65535) -}}
{{- fail (printf "%s.metricsPort must be an integer between 0 and 65535" .component) -}}
{{- end -}}
{{- if and .values.metricsSecure (eq $text "0") -}}
{{- fail (printf "%s.metricsSecure requires %s.metricsPort to be non-zero" .component .component) -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{- /* Placement, pull secrets and priority, the same in both pods. Arguments: root, the component's values. */ -}}
{{- define "slurm-operator.podSpec" -}}
priorityClassName: {{ .root.Values.priorityClassName | default "null" }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $key := list "nodeSelector" "affinity" "tolerations" "topologySpreadConstraints" }}
{{- with get $.values $key }}
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .values.podSecurityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Image, probes and limits, the same in both containers. Arguments: root, the component's values and name. */ -}}
{{- define "slurm-operator.container" -}}
{{- $health := .values.healthPort | default 8081 | int -}}
image: {{ include "slurm-operator.image" (dict "root" .root "image" .values.image "component" .component) | quote }}
imagePullPolicy: {{ .values.imagePullPolicy | default .root.Values.imagePullPolicy | default "null" }}
livenessProbe:
  httpGet: {path: /healthz, port: {{ $health }}}
readinessProbe:
  httpGet: {path: /readyz, port: {{ $health }}}
{{- with .values.resources }}
resources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.securityContext }}
securityContext: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* A PodDisruptionBudget. Arguments: the component's values, name, namespace and selector labels. */ -}}
{{- define "slurm-operator.pdb" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
spec:
  {{- if not (kindIs "invalid" .values.pdb.maxUnavailable) }}
  maxUnavailable: {{ .values.pdb.maxUnavailable }}
  {{- else if kindIs "invalid" .values.pdb.minAvailable }}
  minAvailable: 1
  {{- else }}
  minAvailable: {{ .values.pdb.minAvailable }}
  {{- end }}
  selector:
    matchLabels: {{- .selector | nindent 6 }}
{{- end -}}

{{- /* A NetworkPolicy; probes come from the node and need no rule. Arguments: root, component, name, ingress, egress. */ -}}
{{- define "slurm-operator.networkPolicy" }}
{{- $values := get .root.Values .component }}
{{- $policy := .root.Values.networkPolicy }}
{{- $extra := get ($policy.extra | default dict) .component | default dict }}
{{- $ingress := .ingress }}
{{- $metrics := include "slurm-operator.metricsPort" (dict "values" $values "component" .component) | int }}
{{- if and $metrics $policy.metricsFrom }}
{{- $ingress = append $ingress (dict "from" $policy.metricsFrom "ports" (list (dict "protocol" "TCP" "port" $metrics))) }}
{{- end }}
{{- $test := include "slurm-operator.selectorLabels" (dict "root" .root "app" (printf "%s-test" .name)) | fromYaml }}
{{- $tests := list (dict "podSelector" (dict "matchLabels" $test)) }}
{{- $health := dict "protocol" "TCP" "port" ($values.healthPort | default 8081 | int) }}
{{- $ingress = append $ingress (dict "from" $tests "ports" (list $health)) }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ include "slurm-operator.namespace" .root }}
  labels: {{- include "slurm-operator.labels" (dict "root" .root "app" .name) | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "slurm-operator.selectorLabels" (dict "root" .root "app" .name) | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress: {{- concat $ingress ($extra.ingress | default list) | toYaml | nindent 4 }}
  egress: {{- concat .egress ($extra.egress | default list) | toYaml | nindent 4 }}
{{- end -}}
