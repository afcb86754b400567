{{- /* An image as text. Arguments: the image (text or object), where it stands in the values. */ -}}
{{- define "slurm.image" -}}
{{- if kindIs "string" .image -}}
{{- required (printf "%s.image is required: give a text or an object with repository and tag" .path) .image -}}
{{- else -}}
{{- $image := .image | default dict -}}
{{- $repository := required (printf "%s.image.repository is required" .path) $image.repository -}}
{{- if $image.digest -}}
{{- print $repository "@" $image.digest -}}
{{- else -}}
{{- print $repository ":" (required (printf "%s.image.tag is required, or a digest" .path) $image.tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A container as the resource takes it. Arguments: root, the container's values, where they stand. */ -}}
{{- define "slurm.container" -}}
{{- $container := deepCopy (.container | default dict) -}}
{{- $_ := set $container "image" (include "slurm.image" (dict "image" $container.image "path" .path)) -}}
{{- $_ := set $container "imagePullPolicy" ($container.imagePullPolicy | default .root.Values.imagePullPolicy) -}}
{{- toYaml $container -}}
{{- end -}}

{{- /* The chart's labels with the user's over them. Arguments: the user's metadata, the chart's labels as YAML. */ -}}
{{- define "slurm.metadata" -}}
{{- $user := .metadata | default dict -}}
labels: {{- merge (deepCopy ($user.labels | default dict)) (fromYaml .labels) | toYaml | nindent 2 }}
{{- with $user.annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* A whole pod template. Arguments: root, podSpec, metadata, host name (optional). */ -}}
{{- define "slurm.template" -}}
{{- $spec := deepCopy (.podSpec | default dict) -}}
{{- $secrets := concat ($spec.imagePullSecrets | default list) (.root.Values.imagePullSecrets | default list) -}}
{{- $_ := set $spec "imagePullSecrets" ($secrets | default nil) -}}
{{- $class := .root.Values.priorityClass | default dict -}}
{{- $name := ternary (include "slurm.priorityClass" .root) "" (eq $class.enabled true) -}}
{{- $_ := set $spec "priorityClassName" ($spec.priorityClassName | default $name) -}}
{{- with .hostname -}}{{- $_ := set $spec "hostname" . -}}{{- end -}}
metadata: {{- include "slurm.metadata" (dict "metadata" .metadata "labels" (include "slurm.podLabels" .root)) | nindent 2 }}
spec: {{- toYaml $spec | nindent 2 }}
{{- end -}}

{{- define "slurm.priorityClass" -}}
{{- (.Values.priorityClass | default dict).name | default "slurm-priority-critical" -}}
{{- end -}}

{{- /* A file's text: as given, with one newline at its end. Arguments: text, where it stands in the values. */ -}}
{{- define "slurm.text" -}}
{{- if not (kindIs "string" .text) -}}
{{- fail (printf "%s must be a text" .path) -}}
{{- end -}}
{{- printf "%s\n" (regexReplaceAll "\\n*$" .text "") -}}
{{- end -}}

{{- /* Where an external daemon listens. Arguments: the component's values, its usual port. */ -}}
{{- define "slurm.external" -}}
{{- $config := .values.externalConfig | default dict -}}
host: {{ $config.host | toString | quote }}
port: {{ $config.port | default .port | int }}
{{- end -}}
