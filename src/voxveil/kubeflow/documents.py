"""What documents and manifests repeat of the tables of stages and steps, as text."""

from __future__ import annotations

import re

from voxveil.kubeflow.ends import files_artifact
from voxveil.kubeflow.steps.registry import (
    FINAL_STATUS,
    all_steps,
    is_step,
    spec_of,
    step_parameters,
    step_reads,
    step_values,
)
from voxveil.pretrained.architectures import ARCHITECTURES
from voxveil.runtime.errors import InputError
from voxveil.stages.declaration import Keyed, MadeFor, Port, Service, StageSpec
from voxveil.stages.dvc_pipeline import output_path
from voxveil.stages.registry import STAGES

__all__ = [
    "architectures_table",
    "outputs_table",
    "permissions",
    "policy_values",
    "readme",
    "resources_text",
    "with_block",
]

#: Name, what it is, type, secrecy, content.
_Row = tuple[str, str, str, str, str]

_KEYS: dict[Keyed, str] = {
    "system": "the system",
    "pitch_variant": "the pitch variant",
    "content_variant": "the content variant",
}
_FOR: dict[MadeFor, str] = {
    "": "",
    "pitch": " for the system's pitch variant",
    "content": " for the system's content variant",
    "recognizer": " for `transcribe.variant`",
    "original": " for `score.original`",
}
_NEW_README = """\
<!-- generated: head; written by `make generate` from the table of stages -->
<!-- end: head -->

<!-- generated: table; written by `make generate` from the tables of stages and steps -->
<!-- end: table -->
"""
_NEW_RESOURCES = """\
image: cpu  # target of docker/Dockerfile
cpu: "{cpu}"
memory: {memory}
gpu: 0
timeout_s: {timeout_s}
retries: {retries}
"""


def with_block(text: str, name: str, body: str) -> str:
    """Return a text with the part between the markers of a block replaced.

    The markers are comments of Markdown or YAML: ``<!-- generated: NAME -->`` and ``<!-- end: NAME -->``, or
    ``# generated: NAME`` and ``# end: NAME``.

    Raises:
        InputError: The text does not have both markers once.
    """
    marks = [
        re.findall(rf"^[ \t]*(?:<!-- |# ){word}: {re.escape(name)}\b.*\n", text, re.M)
        for word in ("generated", "end")
    ]
    if [len(found) for found in marks] != [1, 1]:
        raise InputError(
            f"generated block {name!r}: the file must have its markers 'generated' and 'end' once"
        )
    (start,), (end,) = marks
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}{body.rstrip()}\n{end}{after}"


def readme(spec: StageSpec, text: str) -> str:
    """Return the document of a component: its generated parts, and what people wrote between them.

    Args:
        spec: The stage or step.
        text: The document as it is; empty for a new one.

    Raises:
        InputError: It lacks markers.
    """
    text = text or _NEW_README
    if not is_step(spec.name):
        what = spec.help[0].upper() + spec.help[1:]
        stage = f"`voxveil stage {spec.command}`, code in `src/voxveil/stages/{spec.name}.py`"
        text = with_block(text, "head", f"# {spec.name}\n\n{what}: {stage}.")
    return with_block(text, "table", _table(spec))


def _table(spec: StageSpec) -> str:
    rows = ["| Name | What | Type | Secrecy | Holds |", "|---|---|---|---|---|"]
    rows += [
        f"| `{name}` | {what} | {kind} | {secrecy} | {holds} |"
        for name, what, kind, secrecy, holds in _rows(spec)
    ]
    lines = ["\n".join(rows)]
    if spec.outputs or spec.inputs:
        lines += [
            "Folders end in `_DONE.json`, which lists the SHA-256 of every file; digests are taken over that"
            " list."
        ]
    times = f" and GPU (each times `{spec.name}.gpus`), timeout" if spec.trains else ", GPU, timeout"
    last = f"CPU, memory{times} and retries: [resources.yaml](resources.yaml)."
    return "\n\n".join([lines[0], "\n".join([*lines[1:], last])])


def _rows(spec: StageSpec) -> list[_Row]:
    """Return name, what it is, type, secrecy and content of every input and output of a component."""
    sections = ", ".join(f"`{name}`" for name in ("base", *spec.sections))
    reads = step_reads(spec.name) if is_step(spec.name) else f"the stage reads {sections}"
    rows: list[_Row] = [
        ("params", "parameter", "STRUCT", "-", f"every parameter{'; ' if reads else ''}{reads}")
    ]
    if spec.keyed:
        rows.append(("key", "parameter", "STRING", "-", _KEYS[spec.keyed]))
    for name, holds in step_parameters(spec.name).items():
        rows.append((name, "parameter", "STRUCT" if name == FINAL_STATUS else "STRING", "-", holds))
    for port in spec.inputs:
        kind = "LIST" if port.many or port.shares else port.kind
        rows.append((port.name, "input", kind, _origin(port).secrecy, _input_holds(spec, port)))
        if kind != "LIST":
            rows.append((f"{port.name}_digest", "parameter", "STRING", "-", "digest it must have"))
    rows += [(name, "parameter", "LIST", "-", holds) for name, holds in spec.collects]
    for port in spec.outputs:
        rows += _output_rows(spec, port)
    if spec.trains:
        holds = "`TRAINING FINGERPRINT`, by which the report finds its run in MLflow"
        rows.append(("fingerprint", "output", "STRING", "-", holds))
    rows += [(name, "output", "STRING", "-", holds) for name, holds in step_values(spec.name).items()]
    return rows


def _output_rows(spec: StageSpec, port: Port) -> list[_Row]:
    folder = files_artifact(port)
    page = folder != port.name
    holds = "the page, one self-contained file" if page else port.holds
    rows: list[_Row] = [(port.name, "output", port.kind, port.secrecy, holds)]
    if page:
        rows.append((folder, "output", "Dataset", port.secrecy, port.holds))
    if not port.copy_of:
        rows.append((f"{port.name}_digest", "output", "STRING", "-", "digest of what was written"))
    if port.located:
        whom = "gather" if is_step(spec.name) and not spec.name.endswith("_gather") else "report"
        holds = f"`{_place_of(spec)} URI DIGEST`, for the {whom}"
        rows.append((f"{port.name}_location", "output", "STRING", "-", holds))
    return rows


def _input_holds(spec: StageSpec, port: Port) -> str:
    """Return where an input comes from, in words."""
    maker = spec_of(port.made_by)
    output = f"`{_origin(port).name}` of {maker.name}"
    if port.many or port.shares:
        return f"`{_place_of(maker)} URI DIGEST` of every {output}"
    if port.made_for == "key":
        return f"{output} for this {_KEYS[spec.keyed].removeprefix('the ')}"
    return f"{output}{_FOR[port.made_for]}"


def _origin(port: Port) -> Port:
    """Return the output port that an input comes from."""
    outputs = spec_of(port.made_by).outputs
    return next((output for output in outputs if output.name == port.output), outputs[0])


def _place_of(spec: StageSpec) -> str:
    """Return what the first word of a location names."""
    return "SYSTEM" if spec.keyed == "system" else "VARIANT"


def resources_text(spec: StageSpec, text: str) -> str:
    """Return ``resources.yaml`` of a component: image and GPU of the table, the rest as it is.

    Args:
        spec: The stage or step.
        text: The file as it is; empty for a new one, which gets what most stages have.
    """
    usual = {"cpu": 8, "memory": "64Gi", "timeout_s": 172800, "retries": 5}
    if not spec.gpu:
        usual = {"cpu": 2, "memory": "8Gi", "timeout_s": 21600, "retries": 2}
    text = text or _NEW_RESOURCES.format(**usual)
    text = re.sub(r"^image: \w+", f"image: {'gpu' if spec.torch else 'cpu'}", text, flags=re.M)
    return re.sub(r"^gpu: \d+", f"gpu: {int(spec.gpu)}", text, flags=re.M)


def policy_values(service: Service) -> str:
    """Return the stages and steps that may use a service, as entries of a network policy."""
    return "\n".join(f"          - {name}" for name in _using(service))


def outputs_table() -> str:
    """Return the table of where each stage writes what."""
    rows = ["| output | what | secrecy |", "|---|---|---|"]
    for spec in STAGES:
        for port in spec.outputs:
            if not port.copy_of:
                path = output_path(spec, port).replace("${key}", _place_of(spec))
                rows.append(f"| `{path}` | {port.holds} | {port.secrecy} |")
    return "\n".join(rows)


def architectures_table() -> str:
    """Return the rows of the models that can be imported."""
    rows = []
    for name, entry in ARCHITECTURES.items():
        files = ", ".join(f"`{file}`" for file in entry.files)
        rows.append(f"| `{name}` | {entry.kind.replace('_', ' ')} | {entry.help} | {files} |")
    return "\n".join(["| architecture | kind | what | files read |", "|---|---|---|---|", *rows])


def permissions() -> str:
    """Return the table of what pods of pipelines may reach."""
    rows = [
        ("", "May", "May not"),
        ("---", "---", "---"),
        (
            "pods of stages (`voxveil-runner`)",
            "read Kubeflow's launcher settings and the key of its store, report to Argo",
            "list secrets, start pods, read anything else",
        ),
        ("MLflow, its database, its store", "talk to each other", "hold a token of Kubernetes"),
        (
            "every stage",
            "reach the name service, Kubeflow's servers and store, the API server",
            "be called, reach anything else",
        ),
        (", ".join(_using("mlflow")), "reach MLflow", ""),
        (", ".join(_using("https")), "reach HTTPS anywhere (Git, webhook)", ""),
        (
            f"what holds private or released data and is none of these: {', '.join(_confined())}",
            "",
            "reach MLflow or the world",
        ),
    ]
    return "\n".join(f"| {' | '.join(row)} |".replace("  ", " ") for row in rows)


def _using(service: Service) -> list[str]:
    return [spec.name for spec in (*STAGES, *all_steps()) if spec.uses(service)]


def _confined() -> list[str]:
    """Return what handles private or released data, and reaches neither MLflow nor the world."""
    return [
        spec.name
        for spec in (*STAGES, *all_steps())
        if any(port.secrecy != "public" for port in spec.outputs)
        or any(_origin(port).secrecy != "public" for port in spec.inputs)
        if not spec.uses("mlflow") and not spec.uses("https")
    ]
