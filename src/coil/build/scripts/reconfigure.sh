# Tell slurmctld when its slurm.conf has changed, unless somebody else has told it.
set -eu -o pipefail

config=${CONFIG_DIR:-/etc/slurm}

say() {
    echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $*"
}

# Only slurm.conf: the operator writes it once a configuration is accepted, and its last line names the
# content of the files beside it. Those come with it, but the kubelet may bring them before they are accepted.
digest() {
    sha256sum 2>/dev/null <"$config/slurm.conf" || true
}

# The hash that slurmctld runs with is that of the file here.
live() {
    scontrol show config 2>/dev/null | grep -q '^HASH_VAL *= Match'
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
    say "configuration changed"
    # The operator tells slurmctld too when a RestApi leads there, and is sooner: once is enough.
    pause "${YIELD_PERIOD:-2}"
    current=$(digest)
    until live || scontrol reconfigure; do
        say "slurmctld did not take it, trying again"
        pause "${RETRY_PERIOD:-2}"
        current=$(digest)
    done
    known=$current
    say "slurmctld runs with the new configuration"
done
