# Tell slurmctld when a file below its configuration folder has changed.
set -eu -o pipefail

config=${CONFIG_DIR:-/etc/slurm}

say() {
    echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $*"
}

# Names that begin with two dots are the kubelet's: versions of the folder, reached through the links.
# A file may vanish while it is read; the next round sees the new one.
digest() {
    find "$config" -mindepth 1 -name '..*' -prune -o \( -type f -o -type l \) -print0 |
        sort -z |
        { xargs -0 -r sha256sum 2>/dev/null || true; } |
        sha256sum
}

# In the background and waited for: a shell handles signals at once only while it waits.
pause() {
    sleep "$1" &
    wait $!
}
trap 'exit 0' TERM

known=$(digest)
say "watching $config"
while :; do
    pause "${CHECK_PERIOD:-5}"
    current=$(digest)
    [ "$current" != "$known" ] || continue
    say "configuration changed, telling slurmctld"
    until scontrol reconfigure; do
        say "slurmctld did not take it, trying again"
        pause "${RETRY_PERIOD:-2}"
        current=$(digest)
    done
    known=$current
    say "slurmctld runs with the new configuration"
done
