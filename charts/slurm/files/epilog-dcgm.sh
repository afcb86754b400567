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
  exec 9>>"$directory/.lock"
  flock --timeout 10 9
  if [[ -e "$file" ]]; then
    jobs="$(grep --invert-match --line-regexp --fixed-strings -- "$job" "$file" || true)"
    if [[ -n "$jobs" ]]; then
      printf '%s' "$jobs" >"$file"
    else
      rm -f -- "$file"
    fi
  fi
  exec 9>&-
}

if [[ -z "${SLURM_JOB_GPUS:-}" || ! -d "$directory" ]]; then
  exit 0
fi
IFS=, read -r -a gpus <<<"$SLURM_JOB_GPUS"
for gpu in "${gpus[@]}"; do
  (remove "$gpu") || log "cannot take back job $job for GPU $gpu in $directory"
done
exit 0
