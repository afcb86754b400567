#!/bin/sh
# Load every LDIF file of /ldif, in the order of their names, into an empty directory and serve it with
# the certificate in /tls.
set -eu
mkdir /tmp/directory
for file in /ldif/*.ldif; do
    slapadd -f /etc/ldap/slapd.conf -l "$file"
done
exec slapd -d "${SLAPD_DEBUG:-0}" -f /etc/ldap/slapd.conf -h ldaps://:6360
