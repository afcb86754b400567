# Print what a daemon logs: the daemon writes into a FIFO, which this copies to standard output.
set -eu

child=
stop() {
    [ -z "$child" ] || kill "$child" 2>/dev/null || true
    exit "$1"
}
trap 'stop 0' TERM
trap 'stop 1' INT HUP

# In the background and waited for: a shell handles signals at once only while it waits.
run() {
    "$@" &
    child=$!
    wait "$child" || true
    child=
}

mkdir -p "$(dirname "$SOCKET")"
# A FIFO that is there stays: after a restart of this container the daemon still has it open.
if [ ! -p "$SOCKET" ]; then
    rm -f "$SOCKET"
    mkfifo "$SOCKET"
    chmod 777 "$SOCKET"
fi

while :; do
    run cat "$SOCKET"
    run sleep 1
done
