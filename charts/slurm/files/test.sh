# The cluster answers, and a worker that is free runs a job. sackd holds the key, and fetches slurm.conf.
set -eu

sackd -D --conf-server "$CONF_SERVER" &
for _ in $(seq 60); do
  if [ -S /run/slurm/sack.socket ] && scontrol ping >/dev/null 2>&1; then break; fi
  sleep 1
done
scontrol ping
sinfo
partition="$(sinfo --Node --noheader --states=idle,mixed --format=%R | head -n 1)"
if [ -z "$partition" ]; then
  echo "no worker is free: no job tried"
  exit 0
fi
worker="$(srun --partition="$partition" --immediate=60 --time=1 hostname)"
echo "a job in partition $partition ran on $worker"
