"""The team's servers: how MLflow is configured and started everywhere, and all of it on one machine.

:mod:`server` and :mod:`database` are what the image of ``mlflow/`` runs; :mod:`local` adds PostgreSQL and
an S3 server, without Docker.
"""
