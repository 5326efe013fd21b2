# Debian's PostgreSQL with the variables that mlflow/compose.yaml sets: for tests where the public image
# cannot be pulled. Nothing here is meant for a team's data.
ARG BASE_IMAGE=debian:bookworm-slim
FROM ${BASE_IMAGE}
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt \
    apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15 \
    && rm -rf /var/lib/apt/lists/* \
    && rm -rf /var/lib/postgresql/15 \
    && mkdir /var/lib/postgresql/data \
    && chown postgres:postgres /var/lib/postgresql/data \
    && chmod 700 /var/lib/postgresql/data
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
COPY postgres-start.sh /usr/local/bin/postgres-start.sh
VOLUME /var/lib/postgresql/data
USER postgres
STOPSIGNAL SIGINT
CMD ["postgres-start.sh"]
