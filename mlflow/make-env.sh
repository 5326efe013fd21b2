#!/usr/bin/env bash
# Write random passwords into mlflow/.env, readable for you alone; an existing file is left as it is.
#   mlflow/make-env.sh [HOST ...]     names people call MLflow by (this machine's name unless given)
set -euo pipefail
cd "$(dirname "$0")"
[ ! -e .env ] || { echo "mlflow/.env is there; it is left as it is"; exit 0; }
umask 077
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
hosts=$(IFS=,; echo "${*:-$(uname -n),$(uname -n):5000}")
cat > .env.partial <<EOF
DB_PASSWORD=$(random)
S3_ACCESS_KEY=$(random)
S3_SECRET_KEY=$(random)
ADMIN_PASSWORD=$(random)
FLASK_SECRET_KEY=$(random)
ALLOWED_HOSTS=$hosts
EOF
mv .env.partial .env
echo "mlflow/.env: passwords made; keep a copy with your backups"
