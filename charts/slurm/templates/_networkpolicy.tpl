{{- /* Who talks to whom, as NetworkPolicy peers by name, as JSON; a peer that cannot exist is an empty list. */ -}}
{{- define "slurm.network.peers" -}}
{{- $fullname := include "slurm.fullname" . -}}
{{- $policy := .Values.networkPolicy -}}
{{- $peers := dict "outside" ($policy.outside | default list) -}}
{{- $made := dict "slurmctld" (not (.Values.controller | default dict).external) "slurmrestd" true -}}
{{- $accounting := .Values.accounting | default dict -}}
{{- $_ := set $made "slurmdbd" (and $accounting.enabled (not $accounting.external)) -}}
{{- range $app, $exists := $made -}}
{{- $labels := dict "app.kubernetes.io/name" $app "app.kubernetes.io/instance" $fullname -}}
{{- $_ := set $peers $app (ternary (list (dict "podSelector" (dict "matchLabels" $labels))) list (eq $exists true)) -}}
{{- end -}}
{{- $labels := dict "app.kubernetes.io/name" "slurmd" "slinky.slurm.net/cluster" $fullname -}}
{{- $_ := set $peers "slurmd" (list (dict "podSelector" (dict "matchLabels" $labels))) -}}
{{- $logins := list -}}
{{- range $key, $set := include "slurm.loginsets" . | fromJson -}}
{{- $logins = append $logins (printf "%s-login-%s" $fullname $key) -}}
{{- end -}}
{{- $named := dict "key" "app.kubernetes.io/instance" "operator" "In" "values" $logins -}}
{{- $selector := dict "matchLabels" (dict "app.kubernetes.io/name" "login") "matchExpressions" (list $named) -}}
{{- $_ := set $peers "login" (ternary (list (dict "podSelector" $selector)) list (not (empty $logins))) -}}
{{- $_ := set $peers "test" (list (dict "podSelector" (dict "matchLabels" (include "slurm.test.labels" . | fromYaml)))) -}}
{{- toJson $peers -}}
{{- end -}}

{{- /* A list with one rule, or none without peers: a rule that names nobody would let everybody in.
Arguments: direction (from or to), peers, ports (numbers; a range is a list of two; none: all). */ -}}
{{- define "slurm.network.rule" -}}
{{- $rules := list -}}
{{- if .peers -}}
{{- $rule := dict .direction .peers -}}
{{- with include "slurm.network.ports" .ports | fromJsonArray -}}{{- $_ := set $rule "ports" . -}}{{- end -}}
{{- $rules = list $rule -}}
{{- end -}}
{{- toJson $rules -}}
{{- end -}}

{{- define "slurm.network.ports" -}}
{{- $ports := list -}}
{{- range . | default list -}}
{{- if kindIs "slice" . -}}
{{- $ports = append $ports (dict "protocol" "TCP" "port" (index . 0 | int) "endPort" (index . 1 | int)) -}}
{{- else -}}
{{- $ports = append $ports (dict "protocol" "TCP" "port" (int .)) -}}
{{- end -}}
{{- end -}}
{{- toJson $ports -}}
{{- end -}}

{{- /* One NetworkPolicy. Arguments: root, daemon, peers (its own pods), ingress, egress (null: not restricted). */ -}}
{{- define "slurm.network.policy" }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "slurm.fullname" .root }}-{{ .daemon }}
  namespace: {{ include "slurm.namespace" .root }}
  labels: {{- include "slurm.labels" .root | nindent 4 }}
spec:
  podSelector: {{- (first .peers).podSelector | toYaml | nindent 4 }}
  policyTypes: {{ ternary "[Ingress]" "[Ingress, Egress]" (kindIs "invalid" .egress) }}
  {{- $extra := get (.root.Values.networkPolicy.extra | default dict) .daemon | default dict }}
  ingress: {{- concat .ingress ($extra.ingress | default list) | toYaml | nindent 4 }}
  {{- if not (kindIs "invalid" .egress) }}
  egress: {{- concat .egress ($extra.egress | default list) | toYaml | nindent 4 }}
  {{- end }}
{{- end -}}

{{- /* Fails where daemons are out of reach of pod selectors and nobody said where they are. */ -}}
{{- define "slurm.network.check" -}}
{{- $where := list -}}
{{- range $name := list "controller" "accounting" -}}
{{- $values := get $.Values $name | default dict -}}
{{- if and $values.external (or $values.enabled (eq $name "controller")) -}}
{{- $where = append $where (printf "%s.external" $name) -}}
{{- end -}}
{{- if ($values.podSpec | default dict).hostNetwork -}}{{- $where = append $where (printf "%s.podSpec.hostNetwork" $name) -}}{{- end -}}
{{- end -}}
{{- range $kind := list "nodesets" "loginsets" -}}
{{- range $key, $set := include (printf "slurm.%s" $kind) $ | fromJson -}}
{{- if ($set.podSpec | default dict).hostNetwork -}}{{- $where = append $where (printf "%s.%s.podSpec.hostNetwork" $kind $key) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $where (not .Values.networkPolicy.outside) -}}
{{- fail (printf "networkPolicy.outside is required with %s: their traffic has addresses of no pod; list these as peers, such as {ipBlock: {cidr: 192.0.2.0/24}}" (join ", " $where)) -}}
{{- end -}}
{{- end -}}
