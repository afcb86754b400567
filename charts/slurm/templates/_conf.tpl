{{- /* One option value. Arguments: value, where it stands in the values. */ -}}
{{- define "slurm.conf.value" -}}
{{- if kindIs "map" .value -}}
{{- fail (printf "%s is a map: give a text, a number or a list" .path) -}}
{{- else if and (kindIs "float64" .value) (eq .value (floor .value)) -}}
{{- printf "%.0f" .value -}}
{{- else -}}
{{- toString .value -}}
{{- end -}}
{{- end -}}

{{- /*
Options as `Key=value`, in byte order of their keys, null and empty ones left out; as JSON list.
Arguments: map, where it stands in the values.
*/ -}}
{{- define "slurm.conf.options" -}}
{{- $map := .map | default dict -}}
{{- $path := .path -}}
{{- $options := list -}}
{{- range $key := keys $map | sortAlpha -}}
{{- $value := get $map $key -}}
{{- $here := printf "%s.%s" $path $key -}}
{{- if kindIs "slice" $value -}}
{{- $items := list -}}
{{- range $value -}}
{{- $items = append $items (include "slurm.conf.value" (dict "value" . "path" $here)) -}}
{{- end -}}
{{- $value = join "," $items -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $value = include "slurm.conf.value" (dict "value" $value "path" $here) -}}
{{- end -}}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) -}}
{{- $options = append $options (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- end -}}
{{- toJson $options -}}
{{- end -}}

{{- /* Raw text, or the map when there is none. Arguments: raw, map, separator, where the map stands. */ -}}
{{- define "slurm.conf" -}}
{{- if .raw -}}
{{- .raw -}}
{{- else -}}
{{- include "slurm.conf.options" (dict "map" .map "path" .path) | fromJsonArray | join .separator -}}
{{- end -}}
{{- end -}}

{{- /* The partition lines for slurm.conf. */ -}}
{{- define "slurm.partitions" -}}
{{- $sets := include "slurm.nodesets" . | fromJson -}}
{{- $lines := list -}}
{{- range $name := keys (.Values.partitions | default dict) | sortAlpha -}}
{{- $partition := get $.Values.partitions $name | default dict -}}
{{- if $partition.enabled -}}
{{- $path := printf "partitions.%s" $name -}}
{{- if not $partition.nodesets -}}
{{- fail (printf "%s.nodesets must contain at least one NodeSet (or ALL)" $path) -}}
{{- end -}}
{{- range $partition.nodesets -}}
{{- if not (or (eq . "ALL") (hasKey $sets .)) -}}
{{- fail (printf "%s.nodesets: referencing nodeset `%s` that does not exist or is disabled" $path .) -}}
{{- end -}}
{{- end -}}
{{- $options := include "slurm.conf" (dict "raw" $partition.config "map" $partition.configMap "separator" " " "path" (printf "%s.configMap" $path)) -}}
{{- $lines = append $lines (printf "PartitionName=%s Nodes=%s %s" $name (uniq $partition.nodesets | sortAlpha | join ",") $options) -}}
{{- end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}
