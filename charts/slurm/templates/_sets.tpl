{{- /* The enabled entries over their defaults, as JSON. Arguments: defaults, entries. */ -}}
{{- define "slurm.sets" -}}
{{- $defaults := .defaults | default dict -}}
{{- $sets := dict -}}
{{- range $key, $entry := .entries | default dict -}}
{{- $set := mergeOverwrite (deepCopy $defaults) (deepCopy ($entry | default dict)) -}}
{{- if $set.enabled -}}
{{- $_ := set $sets $key $set -}}
{{- end -}}
{{- end -}}
{{- toJson $sets -}}
{{- end -}}

{{- define "slurm.loginsets" -}}
{{- include "slurm.sets" (dict "defaults" .Values.loginsetDefaults "entries" .Values.loginsets) -}}
{{- end -}}

{{- /* The enabled worker sets, with what vendors add, as JSON. */ -}}
{{- define "slurm.nodesets" -}}
{{- $sets := include "slurm.sets" (dict "defaults" .Values.nodesetDefaults "entries" .Values.nodesets) | fromJson -}}
{{- $result := dict -}}
{{- range $key, $set := $sets -}}
{{- $_ := set $result $key (include "slurm.vendor.patched" (dict "root" $ "key" $key "set" $set) | fromJson) -}}
{{- end -}}
{{- toJson $result -}}
{{- end -}}
