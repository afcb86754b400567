#!/bin/sh
# slurmrestd with SLURMRESTD_OPTIONS (split at blanks) and the container's arguments.
set -f
# shellcheck disable=SC2086
exec slurmrestd ${SLURMRESTD_OPTIONS-} "$@"
