#!/bin/bash
# Take back what the prolog noted for DCGM Exporter.
set -o errexit -o nounset -o pipefail

directory='@DIRECTORY@'
job="${SLURM_JOB_ID:-0}"

log() {
  echo "[$(date)] [$$] $*" >&2
}

# Remove a line from a file, and the file with its last line. Arguments: file, line, end of the last line.
drop() {
  local rest
  [[ -e "$1" ]] || return 0
  rest="$(grep --invert-match --line-regexp --fixed-strings -- "$2" "$1" || true)"
  if [[ -n "$rest" ]]; then
    printf '%s' "$rest$3" >"$1"
  else
    rm -f -- "$1"
  fi
}

# Remove the job from a GPU's file and from the list of this node's jobs.
remove() {
  {
    flock --timeout 10 9 || return 1
    drop "$directory/$1" "$job" '' || return 1
    drop "$directory/.jobs-${SLURMD_NODENAME:-}" "$1 $job" $'\n' || return 1
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
