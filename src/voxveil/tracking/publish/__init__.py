"""Publishing of finished results to MLflow.

:mod:`~voxveil.tracking.publish.plan` decides what is published,
:mod:`~voxveil.tracking.publish.send` sends it.

Everything is a projection of the evaluate and report outputs and can be made from them again.
"""
