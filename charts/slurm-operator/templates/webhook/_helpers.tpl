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

{{- /* Name of the Secret with the certificate. One that somebody else made under the wanted name (cert-manager, before
certManager.enabled became false) is left alone: Helm cannot own it. */ -}}
{{- define "slurm-operator.webhook.secret" -}}
{{- $secret := .Values.certManager.secretName -}}
{{- if not (or .Values.certManager.enabled .Values.certManager.caBundle) -}}
{{- $found := lookup "v1" "Secret" (include "slurm-operator.namespace" .) $secret -}}
{{- if and $found (ne .Release.Name (get ($found.metadata.annotations | default dict) "meta.helm.sh/release-name")) -}}
{{- $secret = printf "%s-helm" $secret -}}
{{- end -}}
{{- end -}}
{{- $secret -}}
{{- end -}}

{{- /* The Secret's `data` and the `caBundle`, as YAML: of the Secret that is there, or new ones. The bundle then
holds the earlier CA too, since the pods go on with the earlier certificate until the kubelet hands them the new
one; the next upgrade drops it. */ -}}
{{- define "slurm-operator.webhook.certificates" -}}
{{- $secret := include "slurm-operator.webhook.secret" . -}}
{{- $namespace := include "slurm-operator.namespace" . -}}
{{- $data := (lookup "v1" "Secret" $namespace $secret).data | default dict -}}
{{- $bundle := get $data "ca.crt" -}}
{{- if not (and (get $data "tls.crt") (get $data "tls.key") $bundle) -}}
{{- $name := include "slurm-operator.webhook.name" . -}}
{{- $hosts := list (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) -}}
{{- $ca := genCA $secret 3650 -}}
{{- $leaf := genSignedCert $name nil $hosts 3650 $ca -}}
{{- $data = dict "tls.crt" (b64enc $leaf.Cert) "tls.key" (b64enc $leaf.Key) "ca.crt" (b64enc $ca.Cert) -}}
{{- $earlier := "" -}}
{{- $registered := lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" (include "slurm-operator.webhook.fullname" .) -}}
{{- range $registered.webhooks -}}
{{- $earlier = default "" .clientConfig.caBundle -}}
{{- end -}}
{{- $bundle = b64enc (print $ca.Cert (b64dec $earlier)) -}}
{{- end -}}
{{- toYaml (dict "data" (pick $data "tls.crt" "tls.key" "ca.crt") "caBundle" $bundle) -}}
{{- end -}}
