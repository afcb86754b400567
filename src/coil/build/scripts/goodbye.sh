# Set the node of a stopping worker down; a reason that is not the operator's own stays. A node without jobs that
# somebody else has drained is left as it is: a drain of hers would keep it DOWN for ever.
name=$(hostname)
record=$(scontrol show node "$name") || {
    echo "$record" >&2
    exit 1
}
reason=$(printf '%s\n' "$record" | LC_ALL=C sed -n \
    -e '/^   Reason=/{s///;s/ \[[^][]*@[^][]*\]$//;p;d;}' \
    -e 's/^ \{10\}//p')
whose=another
case $reason in
*' : '*) ;; # Slurm adds a reboot to a reason in this way
'' | 'slurm-operator: '*) whose=ours reason='slurm-operator: Pod is terminating' ;;
esac
case $whose/$(printf '%s\n' "$record" | sed -n 's/^   State=\([^ ]*\).*/\1/p') in
*COMPLETING*) ;;
another/IDLE+*DRAIN*) exit 0 ;;
esac
# scontrol takes one double quote off each end.
scontrol update nodename="$name" state=down reason="\"$reason\""
