"""The pipelines under review: a digest and a readable summary of what 'voxveil pipeline compile' gives.

Write the summaries anew after a change of components, pipeline or parameters, and review the difference:
    python tests/pipelines/goldens.py
A summary says what a person decides on. Its digest covers everything else too: where only the digest changed,
write the whole pipelines in canonical form before and after the change, and compare the two folders:
    python tests/pipelines/goldens.py FOLDER
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from voxveil.config import Params
from voxveil.config.compose import compose
from voxveil.kubeflow.compile import compile_pipeline
from voxveil.kubeflow.groups import COLLECTED, without_exit_handler, without_loops
from voxveil.kubeflow.pods import load_images

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCALES = ("tiny", "quickstart")
CHAIN = "train_and_evaluate"
#: Every file that is kept: pipeline and scale.
OTHERS = ("retrain", "evaluate_external", "evaluate_external_audio")
#: Scale tiny with its work shared between pods.
SHARDS = "tiny-shards"
CHANGES = {SHARDS: {"cluster.anonymize_shards": "3", "cluster.score_shards": "2", "cluster.parallel": "2"}}
#: Features by themselves, at the scale that is made for tests of them.
FEATURES = ("probe_features", "features-tiny")
KEPT = (
    *((CHAIN, scale) for scale in (*SCALES, SHARDS)),
    *((name, "tiny") for name in OTHERS),
    FEATURES,
)
WIDTH = 140
#: How kfp names the parameters through which other tasks' outputs reach a text.
CHANNEL = "pipelinechannel--"

Content = Mapping[str, Any]


@functools.cache
def compiled(scale: str, name: str = CHAIN) -> str:
    """Compile one scale of a pipeline with the fixture images, once in a process."""
    pytest.importorskip("kfp", reason="needs the pipeline extra")
    return compile_pipeline(ROOT, params_of(scale), load_images(HERE / "images.lock.json"), name)


def params_of(scale: str) -> Params:
    """Return the parameters of a scale, those of the shares included."""
    overlay = "tiny" if scale == SHARDS else scale
    return compose(ROOT / "params" / f"{overlay}.yaml", CHANGES.get(scale))


def golden(scale: str, name: str = CHAIN) -> Path:
    """Return the file kept for one scale of a pipeline."""
    return HERE / "golden" / f"{name}-{scale}.txt"


def check(scale: str, name: str = CHAIN) -> None:
    """Raise an error if a pipeline is not what its reviewed summary and digest say."""
    wanted, got = golden(scale, name).read_text(encoding="utf-8"), summary(compiled(scale, name))
    if without_digest(wanted) == without_digest(got):
        assert wanted == got, (
            f"pipeline {name} of scale {scale} changed where its summary does not show it: compare the"
            " canonical form before and after ('python tests/pipelines/goldens.py FOLDER'), then write the"
            " digest anew"
        )
    assert wanted == got, (
        "the pipeline changed: run 'python tests/pipelines/goldens.py' and review the difference"
    )


def without_digest(text: str) -> str:
    """Return a summary without its line of the digest."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("digest: "))


def canonical(text: str) -> str:
    """Return the whole content of a pipeline file in a form that the order of keys does not change.

    The release of kfp that wrote the file is left out. A whole number is the same with and without a point,
    as it is for Kubeflow. The order of lists is kept.
    """
    return canonical_documents(*_parsed(text))


def canonical_documents(documents: list[Any], header: list[str]) -> str:
    """Return the canonical form of a pipeline file: the documents in it, and the comments at its top."""
    whole = [_whole(document) for document in documents]
    whole[0].pop("sdkVersion", None)
    content = {"header": header, "documents": whole}
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _parsed(text: str) -> tuple[list[Any], list[str]]:
    """Return the documents of a pipeline file, and the comments at its top."""
    header = [line for line in text.splitlines() if line.startswith("#")]
    return list(yaml.load_all(text, yaml.CSafeLoader)), header


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digest(text: str) -> str:
    """Return the SHA-256 of the canonical form of a pipeline file."""
    return hashlib.sha256(canonical(text).encode()).hexdigest()


def summary(text: str) -> str:
    """Return what a person reviews of a pipeline file, with the digest of everything.

    It has the arguments with their defaults; the pods, one entry for tasks whose pods have the same command,
    image, resources, retries, caching, secrets and volumes; what every task takes from where; and the loops.
    """
    return summarize(*_parsed(text))


def summarize(documents: list[Any], header: list[str]) -> str:
    """Return the summary of the documents of a pipeline file and the comments at its top."""
    whole = canonical_documents(documents, header)
    spec, *platforms = json.loads(whole)["documents"]
    pods = platforms[0]["platforms"]["kubernetes"]["deploymentSpec"]["executors"] if platforms else {}
    inner, last = without_exit_handler(spec["root"]["dag"]["tasks"], spec["components"])
    tasks = dict(sorted(without_loops(inner, spec["components"]).items()))
    titles = {name: _title(name, task) for name, task in tasks.items()}
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name, task in [*tasks.items(), *([last] if last else [])]:
        label = spec["components"][task["componentRef"]["name"]]["executorLabel"]
        container = spec["deploymentSpec"]["executors"][label]["container"]
        facts = tuple(_pod(task, container, pods.get(label, {})))
        kinds.setdefault(facts, []).append(_title(name, task))
    lines = [f"{spec['pipelineInfo']['name']}: {spec['pipelineInfo'].get('description', '')}"]
    lines += [f"digest: sha256:{hashlib.sha256(whole.encode()).hexdigest()}", "", "Arguments"]
    for name, value in spec["root"].get("inputDefinitions", {}).get("parameters", {}).items():
        lines += _argument(name, value)
    lines += ["", "Pods"]
    for facts, wanting in sorted(kinds.items(), key=lambda item: item[1]):
        lines += [
            *_wrapped(", ".join(wanting), "  "),
            *(line for fact in facts for line in _wrapped(fact, " " * 6)),
        ]
    lines += ["", "Tasks and what they take from where (an artifact X comes with its X_digest unless said)"]
    for name, task in tasks.items():
        lines += _wrapped(f"{titles[name]}: {'; '.join(_taken(task, titles))}", "  ")
    if last:
        ending = f"{_title(*last)} (at the end, whatever became of the others)"
        lines += _wrapped(f"{ending}: {'; '.join(_taken(last[1], titles))}", "  ")
    loops = list(_loops(spec))
    return "\n".join([*lines, *(["", "Loops", *loops] if loops else [])]) + "\n"


def _title(name: str, task: Content) -> str:
    return str(task.get("taskInfo", {}).get("name", name))


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _argument(name: str, value: Content) -> list[str]:
    """Return the lines of an argument; a mapping of sections has a line for each section."""
    kind, default = value["parameterType"], value.get("defaultValue")
    if not isinstance(default, dict):
        return [
            f"  {name}: {kind}" + (f", {json.dumps(default)} unless given" if "defaultValue" in value else "")
        ]
    sections = (
        _wrapped(f"{section}: {_flat(values)}", " " * 6) for section, values in sorted(default.items())
    )
    return [f"  {name}: {kind}, unless given:", *(line for section in sections for line in section)]


def _flat(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key} {_flat(item)}" for key, item in sorted(value.items()))
        return f"{{{inner}}}" if inner else "{}"
    return json.dumps(value, ensure_ascii=False)


def _pod(task: Content, container: Content, pod: Content) -> Iterator[str]:
    """Yield what Kubernetes is asked for: a line for each matter."""
    command = " ".join([*container.get("command", []), *container.get("args", [])])
    yield command
    yield f"image: {container['image']}"
    asked = container.get("resources", {})
    gpu = asked.get("accelerator", {})
    retry = task.get("retryPolicy", {})
    retries = f"{retry.get('maxRetryCount', 0)} retries"
    if retry:
        waits = [str(retry.get(f"backoff{part}")) for part in ("Duration", "Factor", "MaxDuration")]
        retries += f" (after {waits[0]}, times {waits[1]}, at most {waits[2]})"
    facts = [
        f"CPU {_both(asked, 'Cpu')}",
        f"memory {_both(asked, 'Memory')}",
        f"{gpu['resourceCount']} {gpu['resourceType']}" if gpu else "no GPU",
        f"{pod.get('activeDeadlineSeconds', 'no limit of')} s",
        retries,
        "cached" if task.get("cachingOptions", {}).get("enableCache") else "never cached",
    ]
    yield ", ".join(facts)
    for word, found in (
        ("node", [_flat(pod[part]) for part in ("nodeSelector", "tolerations") if part in pod]),
        ("secrets", [_reference(item, "secret") for item in pod.get("secretAsEnv", [])]),
        ("config maps", [_reference(item, "configMap") for item in pod.get("configMapAsEnv", [])]),
        ("environment", [f"{item['name']}={item['value']}" for item in container.get("env", [])]),
        ("fields", [f"{item['name']}={item['fieldPath']}" for item in pod.get("fieldPathAsEnv", [])]),
        ("volumes", list(_volumes(pod))),
        ("labels", [_flat(pod.get("podMetadata", {}).get("labels", {}))]),
    ):
        if found:
            yield f"{word}: {'; '.join(found)}"


def _both(asked: Content, what: str) -> str:
    request, limit = (asked.get(f"resource{what}{end}", "any") for end in ("Request", "Limit"))
    return str(request) if request == limit else f"{request} to {limit}"


def _reference(item: Content, kind: str) -> str:
    names = ", ".join(key["envVar"] for key in item["keyToEnv"])
    return f"{item[f'{kind}Name']}{' (optional)' if item.get('optional') else ''} for {names}"


def _volumes(pod: Content) -> Iterator[str]:
    for mount in pod.get("emptyDirMounts", []):
        more = " ".join(str(mount[name]) for name in ("medium", "sizeLimit") if name in mount)
        yield f"empty at {mount['mountPath']}{' ' if more else ''}{more}"
    for mount in pod.get("pvcMount", []):
        yield f"claim {mount.get('constant', '?')} at {mount['mountPath']}"


def _taken(task: Content, titles: Mapping[str, str]) -> Iterator[str]:
    """Yield where each parameter and artifact comes from; what only goes by order is said last."""
    inputs = task.get("inputs", {})
    parameters, artifacts = dict(inputs.get("parameters", {})), inputs.get("artifacts", {})
    makers = set()
    for name, source in sorted(artifacts.items()):
        origin = source["taskOutputArtifact"]
        makers.add(origin["producerTask"])
        text = f"{name} = {origin['outputArtifactKey']} of {titles[origin['producerTask']]}"
        digest_of = parameters.get(f"{name}_digest", {}).get("taskOutputParameter", {})
        if digest_of == {
            "producerTask": origin["producerTask"],
            "outputParameterKey": f"{origin['outputArtifactKey']}_digest",
        }:
            del parameters[f"{name}_digest"]
        else:
            text += " (no digest beside it)"
        yield text
    channels = {name: source for name, source in parameters.items() if name.startswith(CHANNEL)}
    for name, source in sorted(parameters.items()):
        makers |= {origin["producerTask"] for origin in _origins(source)}
        if name not in channels:
            yield _parameter(name, source, channels, titles)
    after = sorted(titles[name] for name in set(task.get("dependentTasks", [])) - makers if name in titles)
    if after:
        yield f"after {', '.join(after)}"


def _origins(source: Content) -> list[Content]:
    """Return the output parameters that a parameter is made of."""
    return [source["taskOutputParameter"]] if "taskOutputParameter" in source else source.get(COLLECTED, [])


def _parameter(name: str, source: Content, channels: Content, titles: Mapping[str, str]) -> str:
    """Return where a parameter comes from; outputs that kfp put into a text stand in their place in it."""
    made = [
        f"{origin['outputParameterKey']} of {titles[origin['producerTask']]}" for origin in _origins(source)
    ]
    if made:
        return f"{name} = {' + '.join(made)}"
    if "componentInputParameter" in source:
        argument = source["componentInputParameter"]
        return name if name == argument else f"{name} = argument {argument}"
    if "runtimeValue" not in source:
        return f"{name} = {_flat(source)}"
    text = json.dumps(source["runtimeValue"]["constant"], ensure_ascii=False)
    for channel, origin in channels.items():
        filled = _parameter("", origin, {}, titles).removeprefix(" = ")
        text = text.replace(f"\"{{{{$.inputs.parameters['{channel}']}}}}\"", filled)
    return f"{name} = {text}"


def _loops(spec: Content) -> Iterator[str]:
    """Yield a line for each loop: its items, and how many iterations run at once."""
    for component in spec["components"].values():
        for name, task in sorted(component.get("dag", {}).get("tasks", {}).items()):
            if "parameterIterator" in task:
                limit = task.get("iteratorPolicy", {}).get("parallelismLimit")
                items = task["parameterIterator"]["items"].get("raw")
                yield f"  {_title(name, task)}: {items}, {f'{limit} at once' if limit else 'all at once'}"


def main(folder: Path | None) -> None:
    """Write the summary of every pipeline, or its canonical form into a folder."""
    for name, scale in KEPT:
        text = compiled(scale, name)
        path = folder / f"{name}-{scale}.json" if folder else golden(scale, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(canonical(text) if folder else summary(text), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
