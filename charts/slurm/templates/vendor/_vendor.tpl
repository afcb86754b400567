{{- /* A worker set with every vendor's additions, as JSON. Arguments: root, key, set. */ -}}
{{- define "slurm.vendor.patched" -}}
{{- toJson .set -}}
{{- end -}}

{{- /* ConfigMaps with vendors' files for /etc/slurm, as JSON list of names. */ -}}
{{- define "slurm.vendor.files" -}}
{{- toJson list -}}
{{- end -}}
