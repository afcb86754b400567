#!/bin/sh
# mariadbd with one database and one user that owns it, made or put right at each start.
#
#   MARIADB_DATABASE        name of the database (slurm_acct_db)
#   MARIADB_USER            its user, from any host (slurm)
#   MARIADB_PASSWORD        the user's password
#   MARIADB_PASSWORD_FILE   or the file that holds it; read anew at each start
#
# The data folder is made in a folder beside it and renamed, so that an interrupted first start is repeated.
# `mariadb` inside the container is the administrator, without a password; nobody else can be.
set -eu

volume=/var/lib/mysql
if [ -n "${MARIADB_PASSWORD_FILE-}" ]; then
    MARIADB_PASSWORD=$(cat "$MARIADB_PASSWORD_FILE")
fi
: "${MARIADB_PASSWORD:?is needed, or MARIADB_PASSWORD_FILE}"

# A name in backquotes, a text in quotes: each as SQL writes it.
name() { printf '`%s`' "$(printf %s "$1" | sed 's/`/``/g')"; }
text() { printf "'%s'" "$(printf %s "$1" | sed "s/\\\\/\\\\\\\\/g; s/'/''/g")"; }

if [ ! -d "$volume/data" ]; then
    rm -rf "$volume/new"
    mariadb-install-db --no-defaults --datadir="$volume/new" --skip-name-resolve --skip-test-db \
        --auth-root-authentication-method=socket --auth-root-socket-user=mysql >&2
    mv "$volume/new" "$volume/data"
fi

database=$(name "${MARIADB_DATABASE:-slurm_acct_db}")
user="$(text "${MARIADB_USER:-slurm}")@'%'"
password=$(text "$MARIADB_PASSWORD")
umask 077
cat >/run/mysqld/start.sql <<SQL
CREATE DATABASE IF NOT EXISTS $database;
CREATE USER IF NOT EXISTS $user IDENTIFIED BY $password;
ALTER USER $user IDENTIFIED BY $password;
GRANT ALL ON $database.* TO $user;
SQL
exec mariadbd --init-file=/run/mysqld/start.sql "$@"
