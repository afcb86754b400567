# Try a configuration with a slurmctld of its own; the end of the container says how that went.
set -u

candidate=${CANDIDATE_DIR:-/mnt/slurm}
config=${CONFIG_DIR:-/etc/slurm}
work=${WORK_DIR:-/tmp/rehearsal}
said=${MESSAGE_FILE:-/dev/termination-log}

umask 077
mkdir -p "$work/state" || exit 3
for file in "$candidate"/*; do
    cp -L "$file" "$config/" || exit 3
done
# Keys of its own: whatever this slurmctld sends, no daemon of the cluster takes it for one of them.
for key in slurm.key jwt.key; do
    dd if=/dev/urandom of="$config/$key" bs=64 count=1 2>/dev/null || exit 3
done

# The reasons, the last ones when there are many: Kubernetes keeps 4 kB.
finish() {
    grep -E '(error|fatal): ' "$work/log" | tail -n 40 | tail -c 3500 >"$said"
    cat "$work/log"
    exit "$1"
}

slurmctld -D >"$work/log" 2>&1 &
daemon=$!
looks=$((${LIMIT_S:-20} * 20))
while kill -0 "$daemon" 2>/dev/null; do
    ! grep -q 'Running as primary controller' "$work/log" || finish 0
    [ "$looks" -gt 0 ] || finish 4
    looks=$((looks - 1))
    sleep 0.05
done
wait "$daemon"
code=$?
case $code in
    126 | 127) finish 3 ;;  # there is no slurmctld to run
    *) finish 1 ;;
esac
