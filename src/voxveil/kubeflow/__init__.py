"""Kubeflow Pipelines: the stages as container components, compiled, run and adapted.

:func:`run_executor_input` is what runs inside a container and needs no kfp; compiling needs
the ``pipeline`` extra.
"""

from voxveil.kubeflow.adapter import run_executor_input

__all__ = ["run_executor_input"]
