#!/usr/bin/env bash
# Bring what the service tests need: a browser and PostgreSQL from Debian (where this is root on Debian), with
# `containers` a Docker engine too; an S3 server and MLflow from the lock. Elsewhere install them yourself; tests of an absent one
# are skipped and say so, except in CI, where they fail.
set -euo pipefail
missing=()
command -v chromium >/dev/null || missing+=(chromium)
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=(postgresql)
if [ "${1:-}" = containers ] && ! docker info >/dev/null 2>&1; then
    command -v dockerd >/dev/null || missing+=(docker.io)
    command -v debootstrap >/dev/null || missing+=(debootstrap)
fi
if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing ${missing[*]}"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    else
        echo "not installed: ${missing[*]}; their tests will be skipped" >&2
    fi
fi
