"""The summaries under review show what matters, and their digest changes with everything else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import goldens
import pytest
import yaml

Documents = list[dict[str, Any]]


@pytest.fixture(scope="module")
def documents() -> Documents:
    return list(yaml.load_all(goldens.compiled("tiny"), yaml.CSafeLoader))


def text_of(documents: Documents, *, sort_keys: bool = True) -> str:
    header = [line for line in goldens.compiled("tiny").splitlines() if line.startswith("#")]
    return "\n".join([*header, yaml.dump_all(documents, None, yaml.CSafeDumper, sort_keys=sort_keys)])


def container(documents: Documents, stage: str) -> dict[str, Any]:
    return documents[0]["deploymentSpec"]["executors"][f"exec-{stage}"]["container"]


def pod(documents: Documents, stage: str) -> dict[str, Any]:
    return documents[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"][f"exec-{stage}"]


def task(documents: Documents, stage: str) -> dict[str, Any]:
    return documents[0]["components"]["comp-exit-handler-1"]["dag"]["tasks"][stage]


def defaults(documents: Documents) -> dict[str, Any]:
    return documents[0]["root"]["inputDefinitions"]["parameters"]["params"]["defaultValue"]


CHANGES: dict[str, tuple[Callable[[Documents], Any], str]] = {
    "image": (lambda d: container(d, "report").update(image="other@sha256:0"), "image: other@sha256:0"),
    "command": (lambda d: container(d, "report")["command"].append("--more"), "{{$}} --more"),
    "variable": (
        lambda d: container(d, "report").update(env=[{"name": "A", "value": "b"}]),
        "environment: A=b",
    ),
    "memory": (lambda d: container(d, "report")["resources"].update(resourceMemoryLimit="9Gi"), "8Gi to 9Gi"),
    "GPUs": (
        lambda d: container(d, "score")["resources"]["accelerator"].update(resourceCount="7"),
        "7 nvidia.com/gpu",
    ),
    "timeout": (lambda d: pod(d, "report").update(activeDeadlineSeconds="77"), "77 s"),
    "retries": (lambda d: task(d, "report")["retryPolicy"].update(maxRetryCount=9), "9 retries"),
    "waiting": (lambda d: task(d, "report")["retryPolicy"].update(backoffDuration="1s"), "after 1s"),
    "caching": (lambda d: task(d, "score").update(cachingOptions={"enableCache": True}), "cached\n"),
    "secret": (lambda d: pod(d, "report")["secretAsEnv"][0].update(secretName="s"), "secrets: s (optional)"),
    "secret needed": (
        lambda d: pod(d, "report")["secretAsEnv"][0].update(optional=False),
        "voxveil-mlflow for",
    ),
    "secret gone": (lambda d: pod(d, "report").pop("secretAsEnv"), ""),
    "config map": (
        lambda d: pod(d, "report")["configMapAsEnv"][0].update(configMapName="c"),
        "config maps: c for",
    ),
    "volume": (lambda d: pod(d, "train-vocoder").pop("pvcMount"), "volumes: empty at /tmp"),
    "node": (lambda d: pod(d, "score").pop("tolerations"), "node: "),
    "label": (lambda d: pod(d, "report").pop("podMetadata"), ""),
    "artifact": (
        lambda d: task(d, "train-vocoder")["inputs"]["artifacts"]["public"]["taskOutputArtifact"].update(
            outputArtifactKey="private"
        ),
        "train_vocoder: public = private of prepare (no digest beside it)",
    ),
    "digest": (
        lambda d: task(d, "train-vocoder")["inputs"]["parameters"].pop("public_digest"),
        "train_vocoder: public = public of prepare (no digest beside it)",
    ),
    "parameter": (
        lambda d: task(d, "train-pitch")["inputs"]["parameters"]["key"]["runtimeValue"].update(constant="x"),
        'key = "x"',
    ),
    "collected": (
        lambda d: task(d, "report")["inputs"]["parameters"]["metrics"]["runtimeValue"]["constant"].pop(),
        "report: metrics = [metrics_location of evaluate original, metrics_location of evaluate anon]",
    ),
    "order": (
        lambda d: task(d, "train-vocoder")["dependentTasks"].append("train-speaker"),
        "after train_speaker",
    ),
    "name": (lambda d: task(d, "report")["taskInfo"].update(name="page"), "page: "),
    "task gone": (lambda d: d[0]["components"]["comp-exit-handler-1"]["dag"]["tasks"].pop("report"), ""),
    "default": (lambda d: defaults(d)["train_pitch"].update(steps=77), "steps 77"),
    "argument": (
        lambda d: d[0]["root"]["inputDefinitions"]["parameters"].update(more={"parameterType": "STRING"}),
        "more: STRING",
    ),
    "description": (lambda d: d[0]["pipelineInfo"].update(description="other"), ": other"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_that_matters_is_shown(what: str, documents: Documents) -> None:
    change, shown = CHANGES[what]
    changed = copy.deepcopy(documents)
    change(changed)
    before, after = goldens.summarize(documents, []), goldens.summarize(changed, [])
    assert goldens.without_digest(before) != goldens.without_digest(after)
    # Lines are wrapped, so words count and not where a line ends.
    assert " ".join(shown.split()) in " ".join(after.split())


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value that holds no others; an empty list or mapping is one too."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [found for key, item in items for found in leaves(item, (*path, key))]
    yield from inner or [path]


def test_every_value_of_the_file_is_in_the_digest() -> None:
    # The smallest pipeline, since every value of it is changed once.
    text = goldens.compiled("tiny", "evaluate_external")
    documents = list(yaml.load_all(text, yaml.CSafeLoader))
    wanted = goldens.canonical_documents(documents, [])
    silent = []
    for path in leaves(documents):
        *parents, last = path
        inner: Any = documents
        for key in parents:
            inner = inner[key]
        kept, inner[last] = inner[last], "changed"
        if goldens.canonical_documents(documents, []) == wanted:
            silent.append(path)
        inner[last] = kept
    assert silent == [(0, "sdkVersion")]


def test_the_comments_of_the_file_are_in_the_digest() -> None:
    text = goldens.compiled("tiny")
    assert goldens.digest(text.replace("# Written by", "# Made by")) != goldens.digest(text)


def test_neither_the_order_of_keys_nor_the_release_of_kfp_is_in_the_digest(documents: Documents) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(item) for key, item in reversed(value.items())}
        return [turned(item) for item in value] if isinstance(value, list) else value

    other = turned(documents)
    other[0]["sdkVersion"] = "kfp-99.0"
    text = text_of(other, sort_keys=False)
    assert text != text_of(documents)
    assert goldens.digest(text) == goldens.digest(goldens.compiled("tiny"))
    assert goldens.summary(text) == goldens.summary(goldens.compiled("tiny"))


def test_what_the_summary_does_not_show_is_told_as_such(
    documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = copy.deepcopy(documents)
    changed[0]["components"]["comp-report"]["outputDefinitions"]["parameters"].clear()
    text = text_of(changed)
    assert goldens.without_digest(goldens.summary(text)) == goldens.without_digest(
        goldens.golden("tiny").read_text(encoding="utf-8")
    )
    monkeypatch.setattr(goldens, "compiled", lambda scale, name=goldens.CHAIN: text)
    with pytest.raises(AssertionError, match="changed where its summary does not show it"):
        goldens.check("tiny")
    container(changed, "report")["image"] = "other"
    text = text_of(changed)
    with pytest.raises(AssertionError, match="the pipeline changed: run"):
        goldens.check("tiny")


def test_one_summary_for_each_pipeline_and_no_other() -> None:
    assert {path.name for path in (goldens.HERE / "golden").iterdir()} == {
        goldens.golden(scale, name).name for name, scale in goldens.KEPT
    }
