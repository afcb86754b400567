{{- define "slurm.vendor.dcgm" -}}
{{- toJson (((.Values.vendor | default dict).nvidia | default dict).dcgm | default dict) -}}
{{- end -}}

{{- /* The machine types of Google that need more than a node selector, in the order of their patches. */ -}}
{{- define "slurm.vendor.google" -}}
{{- $google := (.Values.vendor | default dict).google | default dict -}}
{{- dict "a3mega" ($google.a3mega | default list) "a3ultra" ($google.a3ultra | default list) | toJson -}}
{{- end -}}

{{- /* ConfigMaps with vendors' files for /etc/slurm, as JSON list of names. */ -}}
{{- define "slurm.vendor.files" -}}
{{- $names := list -}}
{{- range $type, $targets := include "slurm.vendor.google" . | fromJson -}}
{{- if and $targets (not (hasKey ($.Values.configFiles | default dict) "gres.conf")) -}}
{{- $names = append $names (printf "%s-config-%s" (include "slurm.fullname" $) $type) -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{- /*
Two lists of maps as one, matched by a member: those of the left, merged with their partners, then the new ones.
What has no such member stays as it is. Arguments: left, right, id.
*/ -}}
{{- define "slurm.vendor.list" -}}
{{- $id := .id -}}
{{- $new := dict -}}
{{- range .right -}}{{- $_ := set $new (get . $id | toString) . -}}{{- end -}}
{{- $result := list -}}
{{- range .left -}}
{{- $key := get . $id | toString -}}
{{- $result = append $result (mergeOverwrite (deepCopy .) (deepCopy (get $new $key | default dict))) -}}
{{- $_ := unset $new $key -}}
{{- end -}}
{{- range .right -}}{{- if hasKey $new (get . $id | toString) -}}{{- $result = append $result . -}}{{- end -}}{{- end -}}
{{- toJson $result -}}
{{- end -}}

{{- /* A worker set with a patch over it, as JSON. Arguments: set, patch (both in the shape of the values). */ -}}
{{- define "slurm.vendor.apply" -}}
{{- $set := deepCopy .set -}}
{{- $patch := deepCopy .patch -}}
{{- $lists := list
  (dict "at" "slurmd" "list" "env" "id" "name")
  (dict "at" "slurmd" "list" "volumeMounts" "id" "mountPath")
  (dict "at" "podSpec" "list" "volumes" "id" "name")
  (dict "at" "podSpec" "list" "containers" "id" "name")
-}}
{{- range $lists -}}
{{- $ours := get (get $patch .at | default dict) .list -}}
{{- if $ours -}}
{{- $theirs := get (get $set .at | default dict) .list | default list -}}
{{- $merged := include "slurm.vendor.list" (dict "left" $theirs "right" $ours "id" .id) | fromJsonArray -}}
{{- $_ := set (get $patch .at) .list $merged -}}
{{- end -}}
{{- end -}}
{{- toJson (mergeOverwrite $set $patch) -}}
{{- end -}}

{{- /* A worker set with every vendor's additions, as JSON. Arguments: root, key, set. */ -}}
{{- define "slurm.vendor.patched" -}}
{{- $set := .set -}}
{{- $key := .key -}}
{{- range $type, $targets := include "slurm.vendor.google" .root | fromJson -}}
{{- $match := dict -}}
{{- range $targets -}}{{- if eq .targetNodeSet $key -}}{{- $match = . -}}{{- end -}}{{- end -}}
{{- if $match -}}
{{- $patch := include (printf "slurm.vendor.%s" $type) (dict "root" $.root "target" $match) | fromYaml -}}
{{- $set = include "slurm.vendor.apply" (dict "set" $set "patch" $patch) | fromJson -}}
{{- $set = include "slurm.vendor.gres" (dict "set" $set "gres" (get $patch "gres") "key" $key) | fromJson -}}
{{- end -}}
{{- end -}}
{{- /* After the others: they may be what gives the set its GPUs. */ -}}
{{- $dcgm := include "slurm.vendor.dcgm" .root | fromJson -}}
{{- if and $dcgm.enabled (eq (include "slurm.vendor.wantsDcgm" $set) "true") -}}
{{- $script := .root.Files.Get "files/start-dcgm.sh" | replace "@DIRECTORY@" $dcgm.jobMappingDir -}}
{{- $patch := include "slurm.vendor.dcgmPatch" (dict "directory" $dcgm.jobMappingDir "script" $script) | fromYaml -}}
{{- if ((($set.slurmd | default dict).lifecycle) | default dict).postStart -}}
{{- $_ := unset $patch.slurmd "lifecycle" -}}
{{- end -}}
{{- $set = include "slurm.vendor.apply" (dict "set" $set "patch" $patch) | fromJson -}}
{{- end -}}
{{- toJson $set -}}
{{- end -}}

{{- /* Whether a set has GPUs to map; its own word wins over what it asks for. */ -}}
{{- define "slurm.vendor.wantsDcgm" -}}
{{- if not (kindIs "invalid" .dcgmJobMapping) -}}
{{- .dcgmJobMapping -}}
{{- else -}}
{{- $found := false -}}
{{- range list (.slurmd | default dict) (.podSpec | default dict) -}}
{{- $resources := .resources | default dict -}}
{{- range $name, $amount := merge (deepCopy ($resources.limits | default dict)) ($resources.requests | default dict) -}}
{{- if and (regexMatch "^nvidia\\.com/(gpu|mig)" $name) (not (has (toString $amount) (list "0" "" "<nil>"))) -}}
{{- $found = true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}
{{- end -}}

{{- /* Arguments: directory, script to run when slurmd starts. */ -}}
{{- define "slurm.vendor.dcgmPatch" -}}
slurmd:
  lifecycle:
    postStart:
      exec:
        command: {{ list "sh" "-c" .script | toJson }}
  volumeMounts:
    - {name: dcgm-job-mapping, mountPath: {{ .directory | quote }}}
podSpec:
  volumes:
    - name: dcgm-job-mapping
      hostPath: {path: {{ .directory | quote }}, type: DirectoryOrCreate}
{{- end -}}

{{- /* The set with its Gres option, under one spelling, as JSON. Arguments: set, gres, key of the set. */ -}}
{{- define "slurm.vendor.gres" -}}
{{- $set := deepCopy .set -}}
{{- $gres := .gres -}}
{{- $_ := unset $set "gres" -}}
{{- if $set.extraConf -}}
{{- if not (regexMatch "(?i)(^|\\s)gres=" $set.extraConf) -}}
{{- $_ := set $set "extraConf" (printf "%s Gres=%s" (trim $set.extraConf) $gres) -}}
{{- end -}}
{{- else -}}
{{- $options := dict "Gres" $gres -}}
{{- range $name, $value := $set.extraConfMap | default dict -}}
{{- if ne (lower $name) "gres" -}}
{{- $_ := set $options $name $value -}}
{{- else if ne (toString $value) $gres -}}
{{- fail (printf "nodesets.%s.extraConfMap.%s is %v, but the vendor block makes it %s: remove one of them" $.key $name $value $gres) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $set "extraConfMap" $options -}}
{{- end -}}
{{- toJson $set -}}
{{- end -}}
