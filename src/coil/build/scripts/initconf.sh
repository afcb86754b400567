# Copy configuration files and keys to a folder of their own, with the owner and modes Slurm wants.
set -eu

from=${SOURCE_DIR:-/mnt/slurm}
to=${TARGET_DIR:-/mnt/etc/slurm}
owner=${CONFIG_OWNER:-401:401}

mkdir -p "$to"
# The files behind the links of a projected volume, wherever they are.
# In a subshell: keys are nobody else's to read, not even for a moment.
(
    umask 077
    find "$from" -type f \( -name '*.conf' -o -name '*.key' \) -exec cp -f {} "$to/" \;
)
# Numeric ids: the image need not know the user.
chown -R "$owner" "$to"
find "$to" -type f -name '*.conf' ! -name slurmdbd.conf -exec chmod 644 {} \;
find "$to" -type f \( -name slurmdbd.conf -o -name '*.key' \) -exec chmod 600 {} \;
ls -la "$to"
