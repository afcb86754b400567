{{- /* Names as references, or null. Arguments: list of names and of references, in order. */ -}}
{{- define "slurm.refs" -}}
{{- $refs := list -}}
{{- range . -}}
{{- $refs = append $refs (ternary (dict "name" .) . (kindIs "string" .)) -}}
{{- end -}}
{{- toYaml ($refs | default nil) -}}
{{- end -}}

{{- /* ConfigMaps with files for /etc/slurm, as JSON list of names. */ -}}
{{- define "slurm.controller.files" -}}
{{- $names := list -}}
{{- if .Values.configFiles -}}{{- $names = append $names (printf "%s-config-extra" (include "slurm.fullname" .)) -}}{{- end -}}
{{- toJson (concat $names (include "slurm.vendor.files" . | fromJsonArray)) -}}
{{- end -}}

{{- /* The five lists of references. Scripts run in the order of their file names, whatever the order here. */ -}}
{{- define "slurm.controller.refs" -}}
{{- $fullname := include "slurm.fullname" . -}}
{{- $own := dict -}}
{{- range list "prolog" "epilog" "prologSlurmctld" "epilogSlurmctld" -}}
{{- $made := ternary (list (printf "%s-%s-scripts" $fullname (kebabcase .))) list (not (empty (get $.Values (printf "%sScripts" .)))) -}}
{{- $_ := set $own . $made -}}
{{- end -}}
{{- $dcgm := (((.Values.vendor | default dict).nvidia | default dict).dcgm | default dict).enabled -}}
configFileRefs: {{- include "slurm.refs" (include "slurm.controller.files" . | fromJsonArray) | nindent 2 }}
prologScriptRefs: {{- include "slurm.refs" (concat $own.prolog (.Values.prologScriptRefs | default list) (ternary (list (printf "%s-prolog-dcgm" $fullname)) list (eq $dcgm true))) | nindent 2 }}
epilogScriptRefs: {{- include "slurm.refs" (concat (.Values.epilogScriptRefs | default list) $own.epilog (ternary (list (printf "%s-epilog-dcgm" $fullname)) list (eq $dcgm true))) | nindent 2 }}
prologSlurmctldScriptRefs: {{- include "slurm.refs" (concat (.Values.prologSlurmctldScriptRefs | default list) $own.prologSlurmctld) | nindent 2 }}
epilogSlurmctldScriptRefs: {{- include "slurm.refs" (concat (.Values.epilogSlurmctldScriptRefs | default list) $own.epilogSlurmctld) | nindent 2 }}
{{- end -}}

{{- /* The user's lines for slurm.conf, then the partitions. */ -}}
{{- define "slurm.controller.extraConf" -}}
{{- $controller := .Values.controller | default dict -}}
{{- $conf := include "slurm.conf" (dict "raw" $controller.extraConf "map" $controller.extraConfMap "separator" "\n" "path" "controller.extraConfMap") -}}
{{- join "\n" (without (list $conf (include "slurm.partitions" .)) "") | trimSuffix "\n" -}}
{{- end -}}

{{- /* The claim, with the words of this chart for no storage class. */ -}}
{{- define "slurm.controller.persistence" -}}
{{- $claim := deepCopy (.Values.controller.persistence | default dict) -}}
{{- if kindIs "invalid" $claim.storageClassName -}}
{{- $_ := unset $claim "storageClassName" -}}
{{- else if eq $claim.storageClassName "-" -}}
{{- $_ := set $claim "storageClassName" "" -}}
{{- end -}}
{{- toYaml $claim -}}
{{- end -}}
