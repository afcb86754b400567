{{- /* Expressions that select the namespaces to check. Arguments: root, further namespaces to leave out. */ -}}
{{- define "slurm-operator.webhook.namespaces" -}}
matchExpressions:
  {{- with without (splitList "," (nospace (default "" .root.Values.webhook.namespaces))) "" }}
  - key: kubernetes.io/metadata.name
    operator: In
    values: {{- toYaml . | nindent 6 }}
  {{- end }}
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values: {{- toYaml (concat (list "kube-system" "kube-public" "kube-node-lease") .except) | nindent 6 }}
{{- end -}}

{{- define "slurm-operator.webhook.metadata" -}}
name: {{ include "slurm-operator.webhook.fullname" . }}
labels: {{- include "slurm-operator.webhook.labels" . | nindent 2 }}
{{- if .Values.certManager.enabled }}
{{- $certificate := printf "%s/%s" (include "slurm-operator.namespace" .) .Values.certManager.secretName }}
annotations:
  cert-manager.io/inject-ca-from: {{ $certificate }}
  certmanager.k8s.io/inject-ca-from: {{ $certificate }}
{{- end }}
{{- end -}}

{{- /* Where the webhook answers. Arguments: root, path, CA bundle (empty with cert-manager). */ -}}
{{- define "slurm-operator.webhook.client" -}}
{{- with .ca }}
caBundle: {{ . }}
{{- end }}
service:
  name: {{ include "slurm-operator.webhook.name" .root }}
  namespace: {{ include "slurm-operator.namespace" .root }}
  path: {{ .path }}
{{- end -}}

{{- /* Certificate, key and CA in base64, as YAML: those that the Secret holds, or new ones. */ -}}
{{- define "slurm-operator.webhook.certificates" -}}
{{- $secret := .Values.certManager.secretName -}}
{{- $namespace := include "slurm-operator.namespace" . -}}
{{- $data := (lookup "v1" "Secret" $namespace $secret).data | default dict -}}
{{- if not (and (get $data "tls.crt") (get $data "tls.key") (get $data "ca.crt")) -}}
{{- $name := include "slurm-operator.webhook.name" . -}}
{{- $hosts := list (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) -}}
{{- $ca := genCA $secret 3650 -}}
{{- $leaf := genSignedCert $name nil $hosts 3650 $ca -}}
{{- $data = dict "tls.crt" (b64enc $leaf.Cert) "tls.key" (b64enc $leaf.Key) "ca.crt" (b64enc $ca.Cert) -}}
{{- end -}}
{{- toYaml (pick $data "tls.crt" "tls.key" "ca.crt") -}}
{{- end -}}
