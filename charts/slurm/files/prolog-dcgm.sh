#!/bin/bash
# Note for DCGM Exporter which job uses which GPU: one file for each GPU, one job id a line.
set -o errexit -o nounset -o pipefail

directory='@DIRECTORY@'
job="${SLURM_JOB_ID:-0}"

log() {
  echo "[$(date)] [$$] $*" >&2
}

# Add the job to a GPU's file. Jobs that share a GPU come at once, so the file is changed under a lock.
# What this node wrote is listed too, to be taken back when slurmd starts anew after it was lost; the exporter
# reads no file with such a name.
add() {
  local file="$directory/$1" jobs
  {
    flock --timeout 10 9 || return 1
    jobs="$(cat "$file" 2>/dev/null || true)"
    if ! grep --quiet --line-regexp --fixed-strings -- "$job" <<<"$jobs"; then
      printf '%s' "${jobs:+$jobs$'\n'}$job" >"$file" || return 1
    fi
    echo "$1 $job" >>"$directory/.jobs-${SLURMD_NODENAME:-}" || return 1
  } 9>>"$directory/.lock"
}

if [[ -z "${SLURM_JOB_GPUS:-}" ]]; then
  log "job $job uses no GPU"
  exit 0
fi
# Only nodes with GPUs have the folder of the host.
if [[ ! -d "$directory" ]]; then
  log "no $directory on this node"
  exit 0
fi
IFS=, read -r -a gpus <<<"$SLURM_JOB_GPUS"
for gpu in "${gpus[@]}"; do
  add "$gpu" || log "cannot note job $job for GPU $gpu in $directory"
done
exit 0
