{{- /* Annotations for nine networks. Arguments: target, product name, numbers of the interfaces. */ -}}
{{- define "slurm.vendor.networks" -}}
{{- $networks := .target.networks | default list -}}
{{- if ne (len $networks) 9 -}}
{{- fail (printf "Google Cloud GKE %s requires exactly 9 networks, but %d were specified." .product (len $networks)) -}}
{{- end -}}
networking.gke.io/default-interface: eth0
networking.gke.io/interfaces: |
  [
  {{- range $index, $number := .numbers }}
    {"interfaceName":"eth{{ $number }}","network":{{ index $networks $index | toJson }}}{{ if lt $index 8 }},{{ end }}
  {{- end }}
  ]
{{- end -}}

{{- define "slurm.vendor.a3ultra" -}}
gres: gpu:nvidia_h200:8
metadata:
  annotations:
    {{- include "slurm.vendor.networks" (dict "target" .target "product" "A3 Ultra" "numbers" (list 0 2 3 4 5 6 7 8 9)) | nindent 4 }}
slurmd:
  env:
    - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
    - name: PATH
      value: /usr/local/nvidia/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  resources:
    limits: {nvidia.com/gpu: 8}
    requests: {nvidia.com/gpu: 8}
  volumeMounts:
    - {name: library-dir-host, mountPath: /usr/local/nvidia}
    - {name: gib, mountPath: /usr/local/gib}
podSpec:
  nodeSelector:
    cloud.google.com/gke-nodepool: {{ .target.nodePool | quote }}
  volumes:
    - {name: library-dir-host, hostPath: {path: /home/kubernetes/bin/nvidia}}
    - {name: gib, hostPath: {path: /home/kubernetes/bin/gib}}
    - {name: sys, hostPath: {path: /sys}}
    - {name: proc-sys, hostPath: {path: /proc/sys}}
{{- end -}}

{{- define "slurm.vendor.a3mega" -}}
{{- $image := ((.root.Values.vendor | default dict).google | default dict).tcpxoImage -}}
gres: gpu:nvidia_h100_80gb_hbm3:8
metadata:
  annotations:
    {{- include "slurm.vendor.networks" (dict "target" .target "product" "A3 Mega" "numbers" (list 0 1 2 3 4 5 6 7 8)) | nindent 4 }}
    devices.gke.io/container.tcpxo-daemon: |
      {{- range list "nvidia0" "nvidia1" "nvidia2" "nvidia3" "nvidia4" "nvidia5" "nvidia6" "nvidia7" "nvidiactl" "nvidia-uvm" "dmabuf_import_helper" }}
      - path: /dev/{{ . }}
      {{- end }}
slurmd:
  env:
    - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
    - {name: NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY, value: /dev/aperture_devices}
  resources:
    limits: {nvidia.com/gpu: 8}
    requests: {nvidia.com/gpu: 8}
  volumeMounts:
    - {name: aperture-devices, mountPath: /dev/aperture_devices}
podSpec:
  nodeSelector:
    cloud.google.com/gke-nodepool: {{ .target.nodePool | quote }}
  containers:
    - name: tcpxo-daemon
      image: {{ required "vendor.google.tcpxoImage is required for a3mega: the image of the GPUDirect-TCPXO daemon that Google's GKE manual names" $image | quote }}
      imagePullPolicy: Always
      command: [/bin/sh, -c]
      args:
        - |
          set -e
          chmod 755 /fts/entrypoint_rxdm_container.sh
          exec /fts/entrypoint_rxdm_container.sh --num_hops=2 --num_nics=8 --uid= --alsologtostderr
      env:
        - {name: LD_LIBRARY_PATH, value: /usr/local/nvidia/lib64}
      securityContext:
        capabilities:
          add: [NET_ADMIN, NET_BIND_SERVICE]
      volumeMounts:
        - {name: libraries, mountPath: /usr/local/nvidia/lib64}
        - {name: sys, mountPath: /hostsysfs}
        - {name: proc-sys, mountPath: /hostprocsysfs}
  volumes:
    - {name: libraries, hostPath: {path: /home/kubernetes/bin/nvidia/lib64}}
    - {name: sys, hostPath: {path: /sys}}
    - {name: proc-sys, hostPath: {path: /proc/sys}}
    - {name: aperture-devices, hostPath: {path: /dev/aperture_devices}}
{{- end -}}
