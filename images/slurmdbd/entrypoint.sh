#!/bin/sh
# slurmdbd in the foreground, with SLURMDBD_OPTIONS (split at blanks) and the container's arguments.
set -f
# shellcheck disable=SC2086
exec slurmdbd -D ${SLURMDBD_OPTIONS-} "$@"
