# Set the node of a stopping worker down; a reason that is not the operator's own stays.
name=$(hostname)
record=$(scontrol show node "$name") || {
    echo "$record" >&2
    exit 1
}
reason=$(printf '%s\n' "$record" | LC_ALL=C sed -n \
    -e '/^   Reason=/{s///;s/ \[[^][]*@[^][]*\]$//;p;d;}' \
    -e 's/^ \{10\}//p')
case $reason in
*' : '*) ;; # Slurm adds a reboot to a reason in this way
'' | 'slurm-operator: '*) reason='slurm-operator: Pod is terminating' ;;
esac
# scontrol takes one double quote off each end.
scontrol update nodename="$name" state=down reason="\"$reason\""
