"""Local runs of a compiled pipeline in containers, by Kubeflow's DockerRunner.

Kubeflow's handler lets Docker remove a container when it ends, and takes a container that is gone for one
that succeeded: one that fails fast is reported as a success. So the container is removed here, after its
status was read, and what counts as done is what :func:`voxveil.kubeflow.local.check_outputs` finds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from voxveil.kubeflow.graph import Pipeline, Task
from voxveil.kubeflow.local import Execute, task_environment
from voxveil.runtime.errors import InputError, import_extra, one_line

__all__ = ["docker_execute", "require_images"]

#: User of the images.
_UID = 1000
#: Seconds that no answer of the engine and no task takes.
_LONG = 7 * 86400
#: Variables of this process that a container gets, beside those of the compiled file.
_HANDED_ON = (
    "MLFLOW_TRACKING_URI",
    "MLFLOW_TRACKING_USERNAME",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_EXPERIMENT_NAME",
    "VOXVEIL_TRACKING",
    "VOXVEIL_LEDGER",
    "VOXVEIL_WEBHOOK",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "KFP_RUN_ID",
    "OMP_NUM_THREADS",
)


def require_images(pipeline: Pipeline) -> None:
    """Check before any work that every image is on this machine; nothing is pulled.

    Raises:
        InputError: No Docker, or an image is missing (named).
        MissingExtraError: Docker's package is not installed.
    """
    docker = import_extra("docker", "pipeline")
    try:
        client = docker.from_env()
        try:
            known = {tag for image in client.images.list() for tag in image.tags}
        finally:
            client.close()
    except docker.errors.DockerException as error:
        raise InputError(
            f"Docker cannot be reached ({one_line(error)}); --no-docker runs without it"
        ) from None
    tasks = [*pipeline.tasks, *([pipeline.exit] if pipeline.exit else [])]
    missing = sorted({task.image for task in tasks} - known)
    if missing:
        raise InputError(f"image {missing[0]}: not on this machine; docker/README.md says how it is built")


def docker_execute(root: Path, report: Callable[[str], None], *, network: str = "none") -> Execute:
    """Return a function that runs a task's command in its image.

    The root file system is read-only and the user is not root, as on the cluster; ``root`` is mounted where
    it lies, and is all that is mounted. Files belong to this process's user, to user 1000 where that is root.

    Args:
        root: Folder of the run.
        report: Told every line a container prints.
        network: Docker network; ``host`` lets a container reach servers on this machine.
    """
    import_extra("docker", "pipeline")
    root = Path(root).resolve()
    # Kubernetes gives checkpoints and ledger by volume and by S3; here they lie beside the tasks.
    for name in ("checkpoints", "ledger"):
        (root / name).mkdir(parents=True, exist_ok=True)
        _hand_over(root / name)

    def execute(task: Task, message: Mapping[str, Any]) -> None:
        _hand_over(root / task.name)
        variables = task_environment(
            task, root, {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
        )
        status = _run(task, task.command_for(message), root, variables, network, report)
        if status:
            raise InputError(f"task {task.title}: its container returned {status}; see the lines above")

    return execute


def _run(
    task: Task,
    command: list[str],
    root: Path,
    variables: Mapping[str, str],
    network: str,
    report: Callable[[str], None],
) -> int:
    from kfp import local
    from kfp.local import docker_task_handler

    docker = import_extra("docker", "pipeline")
    runner = local.DockerRunner(
        network_mode=network,
        read_only=True,
        tmpfs={"/tmp": "exec,mode=1777"},  # noqa: S108 - the container's
        user="{}:{}".format(*_user()),
        working_dir="/tmp",  # noqa: S108
        entrypoint="",
        environment=dict(variables),
    )
    handler = docker_task_handler.DockerTaskHandler(task.image, command, str(root), runner)
    client = docker.from_env(timeout=_LONG)
    late = threading.Event()
    try:
        container = client.containers.run(
            image=task.image,
            command=command,
            detach=True,
            volumes=handler.get_volumes_to_mount(client),
            **runner.container_run_args,
        )
        timer = threading.Timer(task.timeout or _LONG, _stop, (container, late))
        timer.daemon = True
        timer.start()
        try:
            for chunk in container.logs(stream=True, follow=True):
                report(chunk.decode(errors="backslashreplace").rstrip("\n"))
            code = int(container.wait()["StatusCode"])
        finally:
            timer.cancel()
            container.remove(force=True)
        if late.is_set():
            raise InputError(f"task {task.title}: stopped after its timeout of {task.timeout} s")
        return code
    except docker.errors.DockerException as error:
        raise InputError(f"task {task.title}: Docker refuses ({one_line(error)})") from None
    finally:
        client.close()


def _stop(container: Any, late: threading.Event) -> None:
    late.set()
    container.kill()


def _user() -> tuple[int, int]:
    """Return user and group of the containers: never root."""
    return (os.getuid(), os.getgid()) if os.getuid() else (_UID, _UID)


def _hand_over(folder: Path) -> None:
    """Give the containers' user write access to a folder created by root."""
    if os.getuid() == 0:
        os.chown(folder, *_user())
