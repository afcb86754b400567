# slurmd starts, so no job of this node runs: take back what is noted of jobs that were lost with the one before.
# It never fails, because then the worker would not start.
cd '@DIRECTORY@' && list=".jobs-$(hostname)" && [ -e "$list" ] || exit 0
(
  flock --timeout 10 9 || exit 0
  while read -r gpu job; do
    jobs="$(grep --invert-match --line-regexp --fixed-strings -- "$job" "$gpu")"
    if [ -n "$jobs" ]; then printf '%s' "$jobs" >"$gpu"; else rm -f -- "$gpu"; fi
  done <"$list"
  rm -f -- "$list"
) 9>>.lock
exit 0
