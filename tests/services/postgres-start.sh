#!/bin/sh
# Make the cluster and the database where there are none, then become the server.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
    # shellcheck disable=SC2086
    initdb -U "$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust -E UTF8 --locale=C.UTF-8 ${POSTGRES_INITDB_ARGS:-} >/dev/null
    rm /tmp/password
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    pg_ctl -w -o '-c listen_addresses=' start >/dev/null
    createdb -U "$POSTGRES_USER" "$POSTGRES_DB" 2>/dev/null || true
    pg_ctl -w -m fast stop >/dev/null
fi
exec postgres -c 'listen_addresses=*'
