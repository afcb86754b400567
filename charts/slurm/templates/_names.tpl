{{- define "slurm.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "slurm.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "slurm.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "slurm.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 -}}
{{- end -}}

{{- /* Labels that do not change with the version, so that an upgrade of the chart restarts no pod. */ -}}
{{- define "slurm.podLabels" -}}
app.kubernetes.io/part-of: slurm
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "slurm.labels" -}}
helm.sh/chart: {{ include "slurm.chart" . | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{ include "slurm.podLabels" . }}
{{- end -}}

{{- /* What tells the pod of `helm test` apart: it is no endpoint of any Service. */ -}}
{{- define "slurm.test.labels" -}}
app.kubernetes.io/name: slurm-test
app.kubernetes.io/instance: {{ include "slurm.fullname" . }}
{{- end -}}

{{- define "slurm.auth.slurm" -}}
{{- $ref := (.Values.slurmKey | default dict).secretRef | default dict -}}
name: {{ $ref.name | default (printf "%s-auth-slurm" (include "slurm.fullname" .)) | quote }}
key: {{ $ref.key | default "slurm.key" | quote }}
{{- end -}}

{{- define "slurm.auth.jwt" -}}
{{- $ref := (.Values.jwtKey | default dict).secretRef | default dict -}}
name: {{ $ref.name | default (printf "%s-auth-jwt" (include "slurm.fullname" .)) | quote }}
key: {{ $ref.key | default "jwt.key" | quote }}
{{- end -}}

{{- define "slurm.auth.jwks" -}}
{{- $ref := (.Values.jwksKeys | default dict).configMapRef | default dict -}}
name: {{ $ref.name | default (printf "%s-auth-jwks" (include "slurm.fullname" .)) | quote }}
key: {{ $ref.key | default "jwks.json" | quote }}
{{- end -}}

{{- define "slurm.sssd" -}}
{{- $ref := (.Values.sssd | default dict).secretRef | default dict -}}
name: {{ $ref.name | default (printf "%s-sssd-conf" (include "slurm.fullname" .)) | quote }}
key: {{ $ref.key | default "sssd.conf" | quote }}
{{- end -}}

{{- /* The references to both keys, and to the JWKS where used. */ -}}
{{- define "slurm.auth" -}}
slurmKeyRef: {{- include "slurm.auth.slurm" . | nindent 2 }}
jwtKeyRef: {{- include "slurm.auth.jwt" . | nindent 2 }}
{{- if (.Values.jwksKeys | default dict).enabled }}
jwksKeyRef: {{- include "slurm.auth.jwks" . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Fails where Kubernetes or Slurm would refuse a name later, in words that say what to change. */ -}}
{{- define "slurm.checkNames" -}}
{{- $fullname := include "slurm.fullname" . -}}
{{- $external := (.Values.controller | default dict).external -}}
{{- $service := printf "%s-controller-internal" $fullname -}}
{{- if and (not $external) (gt (len $service) 63) -}}
{{- fail (printf "the name %q is too long: the Service %s would have %d characters, and 63 are allowed; set fullnameOverride to at most 42 characters" $fullname $service (len $service)) -}}
{{- end -}}
{{- $cluster := .Values.clusterName | default (printf "%s_%s" (include "slurm.namespace" .) $fullname) | toString -}}
{{- if and .Release.IsInstall (not $external) (gt (len $cluster) 40) -}}
{{- fail (printf "the Slurm cluster name %q has %d characters, and 40 are allowed; set clusterName" $cluster (len $cluster)) -}}
{{- end -}}
{{- end -}}

{{- /* The kubectl command that prints a Service's address. Arguments: service, namespace, type. */ -}}
{{- define "slurm.address" -}}
{{- $type := .type | default "ClusterIP" | lower -}}
{{- $path := "{.spec.clusterIP}" -}}
{{- if eq $type "loadbalancer" -}}{{- $path = "{.status.loadBalancer.ingress[0].ip}" -}}{{- end -}}
{{- if eq $type "externalname" -}}{{- $path = "{.spec.externalName}" -}}{{- end -}}
kubectl -n {{ .namespace }} get service {{ .service }} -o jsonpath='{{ $path }}'
{{- end -}}
