"""The team's servers: MLflow configuration and start, and all of them on one machine.

:mod:`server` and :mod:`database` are what the image of ``mlflow/`` runs; :mod:`local` adds PostgreSQL and
an S3 server, without Docker.
"""
