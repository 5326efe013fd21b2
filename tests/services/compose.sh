#!/usr/bin/env bash
# mlflow/compose.yaml as a whole on this machine: build its images, start it, use it, stop it, start it again.
# Its containers, networks and volumes are removed at the end; images stay.
#
#   tests/services/compose.sh
#
# DOCKER          client with BuildKit (docker)
# COMPOSE         docker-compose, or "docker compose"
# BASE_IMAGE      image with Python, as in docker/README.md (the one the Dockerfile names)
# POSTGRES_IMAGE  PostgreSQL; without it Debian's is built upon BASE_IMAGE
# CA              bundle of a private certificate authority, for the builds
set -euo pipefail
cd "$(dirname "$0")/../.."
docker=${DOCKER:-docker}
read -ra compose <<< "${COMPOSE:-docker-compose}"
base=${BASE_IMAGE:-python:3.11-slim-bookworm}
export DOCKER_BUILDKIT=1 MLFLOW_PORT=${MLFLOW_PORT:-15500} S3_PORT=${S3_PORT:-19900}
export MLFLOW_IMAGE=voxveil-mlflow:try S3_IMAGE=voxveil-s3:try BASE_IMAGE=$base
scratch=$(mktemp -d "${TMPDIR:-/tmp}/voxveil-compose.XXXXXX")
project=voxveil-try-$$

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fail() { echo "compose: $*" >&2; exit 1; }
up() { "${compose[@]}" -p "$project" -f mlflow/compose.yaml --env-file "$scratch/.env" "$@"; }
build() {
    "$docker" build -q --network host ${CA:+--secret "id=ca,src=$CA"} --build-arg BASE_IMAGE="$base" "$@" >/dev/null
}
# shellcheck disable=SC2317
clean() {
    local status=$?
    [ "$status" = 0 ] || [ ! -f "$scratch/.env" ] || up logs --tail=30 || true
    up down -v --remove-orphans >/dev/null 2>&1 || true
    rm -rf "$scratch"
    exit "$status"
}
trap clean EXIT

build --target server -t "$MLFLOW_IMAGE" -f mlflow/Dockerfile .; say "image of MLflow"
build --target s3 -t "$S3_IMAGE" -f mlflow/Dockerfile .; say "image of S3"
if [ -z "${POSTGRES_IMAGE:-}" ]; then
    export POSTGRES_IMAGE=voxveil-postgres:try
    build -t "$POSTGRES_IMAGE" -f tests/services/postgres.Dockerfile tests/services; say "image of PostgreSQL"
fi

cp mlflow/make-env.sh "$scratch/"
bash "$scratch/make-env.sh" mlflow.example.org >/dev/null
value() { sed -n "s/^$1=//p" "$scratch/.env"; }
admin=admin:$(value ADMIN_PASSWORD)
keys=$(value S3_ACCESS_KEY):$(value S3_SECRET_KEY)
server=http://127.0.0.1:$MLFLOW_PORT

status() { curl -s -o /dev/null -w '%{http_code}' "$@" || true; }
call() { curl -sf -u "$admin" -H 'Content-Type: application/json' "$server/api/2.0/mlflow/$1" -d "$2"; }
field() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -1; }
objects() {
    curl -sf --aws-sigv4 aws:amz:us-east-1:s3 --user "$keys" "http://127.0.0.1:$S3_PORT/mlflow?list-type=2&prefix=artifacts%2F" \
        | { grep -o '<Key>' || true; } | wc -l
}
wait_for() {
    local until=$((SECONDS + 240))
    until up exec -T mlflow voxveil stack probe >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || fail "MLflow does not answer"
        sleep 2
    done
}

up up -d --no-build >/dev/null 2>&1 || fail "does not start"
wait_for; say "MLflow answers in its container"
search=("$server/api/2.0/mlflow/experiments/search" -H 'Content-Type: application/json' -d '{"max_results":1}')
[ "$(status "${search[@]}")" = 401 ] || fail "answers without a password"
[ "$(status -u "$admin" "${search[@]}")" = 200 ] || fail "does not answer through its published port"
[ "$(status -u "$admin" -H 'Host: mlflow.example.org' "${search[@]}")" = 200 ] || fail "does not know its name"
[ "$(status -u "$admin" -H 'Host: evil.example' "${search[@]}")" = 403 ] || fail "answers to any name"
call_by_name='import base64, sys, urllib.request as u
request = u.Request("http://mlflow:5000/api/2.0/mlflow/experiments/search", data=b"{\"max_results\": 1}", headers={
    "Content-Type": "application/json", "Authorization": "Basic " + base64.b64encode(sys.argv[1].encode()).decode()})
sys.exit(u.urlopen(request, timeout=30).status != 200)'
up exec -T s3 python3 -c "$call_by_name" "$admin" || fail "does not answer another container by its service name"
say "users and names: 401, 200, 200, 403; another container by http://mlflow:5000"

run=$(call runs/create '{"experiment_id": "0", "run_name": "compose"}' | field run_id)
[ -n "$run" ] || fail "made no run"
head -c 3000000 /dev/urandom > "$scratch/sent"
address=$server/api/2.0/mlflow-artifacts/artifacts/0/$run/artifacts/sent
[ "$(status -u "$admin" -T "$scratch/sent" "$address")" = 200 ] || fail "took no artifact"
[ "$(objects)" = 1 ] || fail "the artifact is not in the bucket"
curl -sf -u "$admin" -o "$scratch/got" "$address"
cmp "$scratch/sent" "$scratch/got"; say "an artifact went through the proxy into the bucket and came back equal"

up down >/dev/null 2>&1
up up -d --no-build >/dev/null 2>&1
wait_for
curl -sf -u "$admin" -o "$scratch/again" "$address"
cmp "$scratch/sent" "$scratch/again"; say "stopped and started: run and artifact are there"

up exec -T postgres pg_dump -U mlflow -Fc mlflow > "$scratch/mlflow.dump"
[ -s "$scratch/mlflow.dump" ] || fail "no backup"
up run --rm -T mlflow voxveil stack migrate --upgrade 2>/dev/null | grep -q 'database: current' || fail "migrate"
say "backup of $(wc -c < "$scratch/mlflow.dump") bytes, schema current"

call runs/delete "{\"run_id\": \"$run\"}" >/dev/null
up exec -T mlflow voxveil stack gc --older-than 0d | grep -q ': 1 removed for good' || fail "gc removed nothing"
[ "$(objects)" = 0 ] || fail "gc left the artifact"
say "a deleted run and its artifact are gone for good"
