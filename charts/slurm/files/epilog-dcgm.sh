#!/bin/bash
# Take back what the prolog noted for DCGM Exporter.
set -o errexit -o nounset -o pipefail

directory='@DIRECTORY@'
job="${SLURM_JOB_ID:-0}"

log() {
  echo "[$(date)] [$$] $*" >&2
}

# Remove the job from a GPU's file, and the file with its last job.
remove() {
  local file="$directory/$1" jobs
  {
    flock --timeout 10 9 || return 1
    [[ -e "$file" ]] || return 0
    jobs="$(grep --invert-match --line-regexp --fixed-strings -- "$job" "$file" || true)"
    if [[ -n "$jobs" ]]; then
      printf '%s' "$jobs" >"$file" || return 1
    else
      rm -f -- "$file" || return 1
    fi
  } 9>>"$directory/.lock"
}

if [[ -z "${SLURM_JOB_GPUS:-}" || ! -d "$directory" ]]; then
  exit 0
fi
IFS=, read -r -a gpus <<<"$SLURM_JOB_GPUS"
for gpu in "${gpus[@]}"; do
  remove "$gpu" || log "cannot take back job $job for GPU $gpu in $directory"
done
exit 0
