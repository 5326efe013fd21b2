"""The planned content of MLflow runs, a pure function of the evaluate and report outputs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxveil.metrics.catalogue import metric_key, undefined_metrics
from voxveil.results.report.results import Summary, headline
from voxveil.results.wording import concentrated, concentrated_text, loss_text
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import DONE, file_sha256
from voxveil.tracking.mlflow_names import PREFIX, finite, flat_params, mlflow_name, short
from voxveil.tracking.publish.describe import describe_run, describe_system

__all__ = ["Plan", "parent_plan", "system_plan"]

#: Figures of one system that stand in the parent run too, so that experiments compare at a glance.
_HEADLINE = (
    "privacy/eer",
    "privacy/unlinkability",
    "privacy/zebra_expected",
    "privacy/identification_rate",
    "privacy/rank_mean",
    "privacy/epsilon_pitch",
    "privacy/epsilon_content",
    "privacy/epsilon_utterance",
    "privacy/rho_content",
    "privacy/rho_utterance",
    "privacy/epsilon_delta_utterance",
    "utility/per",
    "utility/wer",
)

#: Characters of a report's title that a run's name takes.
_NAME = 200


@dataclass(frozen=True)
class Plan:
    """One MLflow run as it should be.

    Attributes:
        name: Run name.
        identity: Tags (without prefix) that find the run again.
        tags: Further tags, full names.
        params: Short text values.
        metrics: Finite numbers only.
        artifacts: (file, folder in the artifact store).
        dataset: Name and digest of the data, and what finds them: the hash of the prepared speech, and of
            a registered dataset the hash of its manifest and the digest of its data in DVC.
    """

    name: str
    identity: Mapping[str, str]
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    artifacts: Sequence[tuple[Path, str]]
    dataset: tuple[str, str, Mapping[str, str]]
    children: tuple[Plan, ...] = field(default=())

    @property
    def digest(self) -> str:
        """SHA-256 of everything the run holds: equal digests, nothing to send."""
        content = {
            "name": self.name,
            "identity": dict(self.identity),
            "tags": dict(self.tags),
            "params": dict(self.params),
            "metrics": dict(self.metrics),
            "artifacts": sorted(
                f"{folder}/{path.name} {file_sha256(path)}" for path, folder in self.artifacts
            ),
            "children": [child.digest for child in self.children],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def parent_plan(metrics: Path, report: Path, key: str, results: str) -> Plan:
    """Return the plan of a whole run, its systems as children.

    Args:
        metrics: Folder of evaluate outputs, one per system.
        report: Output of the report stage.
        key: Run key.
        results: Digest of the evaluate outputs.
    """
    content = read_json(Path(report) / "results.json")
    summaries: list[Summary] = content["systems"]
    children = tuple(system_plan(Path(metrics) / s["system"], s, key, results) for s in summaries)
    overview: dict[str, float] = {}
    for summary, child in zip(summaries, children, strict=True):
        chosen = {name: child.metrics[name] for name in _HEADLINE if name in child.metrics}
        overview.update({mlflow_name(f"{summary['system']}/{name}"): value for name, value in chosen.items()})
    pictures = sorted((Path(report) / "figures").glob("*.png"))
    return Plan(
        name=f"{content['title'][:_NAME]} {key[:12]}",
        identity={"run_key": key, "role": "run", "results": results},
        tags={**_corpus_tags(content["corpus"]), "mlflow.note.content": short(describe_run(summaries))},
        params=flat_params(
            {
                "scale": summaries[0]["scale"],
                "corpus": content["corpus"]["name"],
                "data_revision": content["corpus"]["revision"],
                "systems": ", ".join(summary["system"] for summary in summaries),
            }
        ),
        metrics=finite(overview),
        artifacts=[
            (Path(report) / "index.html", "report"),
            (Path(report) / "results.json", "report"),
            *((path, "report") for path in [Path(report) / "params.json"] if path.is_file()),
            *((picture, "figures") for picture in pictures),
        ],
        dataset=_dataset(content["corpus"]),
        children=children,
    )


def system_plan(folder: Path, summary: Summary, key: str, results: str) -> Plan:
    """Return the plan of one system's run.

    Args:
        folder: Its evaluate output.
        summary: Its ``summary.json``.
        key: Run key.
        results: Digest of all evaluate outputs.
    """
    system, promise, attack = summary["system"], summary["promise"], headline(summary)
    epsilon = {f"epsilon.{name}": loss_text(loss) for name, loss in promise["streams"].items()}
    utterance = promise["utterance"]
    epsilon["epsilon.utterance"] = f"{utterance['epsilon']} ({utterance['rule']})"
    if concentrated(utterance):
        epsilon["epsilon.utterance"] = "none (zCDP)"
        epsilon["zcdp.utterance"] = f"{concentrated_text(utterance)}, {utterance['rule']}"
    conditions = {name: attack[name] for name in ("attacker", "scenario", "enrolment", "trial", "training")}
    return Plan(
        name=system,
        identity={"run_key": key, "role": "system", "system": system, "results": results},
        tags={
            **_corpus_tags(summary["corpus"]),
            **_absent(folder, summary),
            **_pretrained(summary),
            f"{PREFIX}release": promise["release"],
            "mlflow.note.content": short(describe_system(summary)),
        },
        params=flat_params(
            {
                "system": system,
                "kind": summary["kind"],
                **summary["composition"],
                **epsilon,
                **conditions,
                "replicates": summary["replicates"],
                "scale": summary["scale"],
                "data_revision": summary["corpus"]["revision"],
            }
        ),
        metrics=finite(read_json(folder / f"{system}.metrics.json")),
        artifacts=[(path, "evaluate") for path in _files(folder)],
        dataset=_dataset(summary["corpus"]),
    )


def _absent(folder: Path, summary: Summary) -> dict[str, str]:
    """Return a tag for every metric that has no number, with the reason: MLflow must not invent one."""
    tags = {}
    for attack in summary["attacks"]:
        full = read_json(folder / f"{attack['attacker']}-{attack['scenario']}.json")
        for name, reason in undefined_metrics(full).items():
            kind = "unbounded" if reason.startswith("unbounded") else "undefined"
            where = metric_key(name, attack["attacker"], attack["scenario"])
            tags[mlflow_name(f"{PREFIX}{kind}.{where}")] = short(reason)
    losses = {**summary["promise"]["streams"], "utterance": summary["promise"]["utterance"]}
    for name, loss in losses.items():
        if concentrated(loss):
            reason = "Gaussian noise: no pure epsilon holds, privacy/rho_* and privacy/epsilon_delta_* do"
            tags[f"{PREFIX}unbounded.privacy/epsilon_{name}"] = reason
        elif loss["epsilon"] == "inf" or not math.isfinite(loss["epsilon"]):
            tags[f"{PREFIX}unbounded.privacy/epsilon_{name}"] = "no noise, nothing is promised"
    if summary["utility"]["per"]["value"] is None:
        tags[f"{PREFIX}undefined.utility/per"] = short(str(summary["utility"]["per"]["reason"]))
    return tags


def _pretrained(summary: Summary) -> dict[str, str]:
    """Return digest, licence and source of every imported model behind the results, by architecture."""
    utility = summary["utility"]
    judges = [*((utility.get("naturalness") or {}).values()), utility.get("wer") or {}]
    used = [attack.get("pretrained") for attack in summary["attacks"]]
    used += [judge.get("model") for judge in judges]
    return {
        mlflow_name(f"{PREFIX}pretrained.{model['architecture']}.{model['digest'][:12]}.{name}"): short(
            model[name]
        )
        for model in used
        if model
        for name in ("digest", "licence", "source")
    }


def _corpus_tags(corpus: Mapping[str, Any]) -> dict[str, str]:
    version = corpus.get("dataset")
    return {
        **({f"{PREFIX}dataset": version["manifest_sha256"]} if version else {}),
        f"{PREFIX}corpus": corpus["name"],
        f"{PREFIX}synthetic": str(corpus["synthetic"]).lower(),
        f"{PREFIX}public": str(corpus["public"]).lower(),
        f"{PREFIX}data_revision": corpus["revision"],
    }


def _dataset(corpus: Mapping[str, Any]) -> tuple[str, str, Mapping[str, str]]:
    found = {"revision": corpus["revision"], **(corpus.get("dataset") or {})}
    return mlflow_name(corpus["name"]), corpus["revision"][:36], found


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.glob("*.json") if path.name != DONE)
