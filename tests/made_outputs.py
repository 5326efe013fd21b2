"""Finished stage outputs with known contents, for the tests of evaluate, report and tracking.

Scores are drawn so that ``leak`` standard deviations separate same-speaker pairs from others; the
ledger, trial lists and audio are written by the library's own writers, so the stages under test
read what the real ones leave.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np

from voxveil.attack.attackers.interface import Conditions
from voxveil.attack.rank import RankScores
from voxveil.attack.scenarios import Scored, write_attack
from voxveil.audio.files import encode_flac
from voxveil.config import Params, parse_params
from voxveil.config.compose import params_text
from voxveil.corpus.trials import Trial, TrialLists
from voxveil.privacy.ball import LaplaceBall
from voxveil.privacy.ledger import Ledger, write_ledger
from voxveil.privacy.loss import INFINITE, Loss
from voxveil.privacy.loss_rule import LossRule, StreamMechanism
from voxveil.privacy.record import Entry
from voxveil.privacy.register import open_register
from voxveil.privacy.words import RecognizedWords
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish
from voxveil.runtime.seeding import stream
from voxveil.stages.run import run_stage
from voxveil.utility.edits import Edits, ErrorRate

CORPUS = {
    "name": "embedded",
    "synthetic": True,
    "public": True,
    "revision": "0f" * 32,
    "splits": {"private": {"speakers": 8, "utterances": 48, "seconds": 144.0}},
    "overlaps": [{"lists": ["extractor", "synthesis"], "speakers": 32}],
    "skipped": 0,
    "speakers_without_voiced_frames": 0,
}


@dataclasses.dataclass(frozen=True)
class Made:
    """One system's outputs.

    Attributes:
        leak: Separation of target scores in standard deviations.
        pitch: Pitch epsilon per utterance, 0 = identity.
        content: Content epsilon per vector, 0 = identity.
        rho: zCDP rho per vector instead of a content epsilon, 0 = none.
        per: Phone error rate in percent.
        kind: As in the parameters.
        words: Digest of a recognizer whose words are released in place of pitch and content, empty = none.
    """

    leak: float
    pitch: float = 0.0
    content: float = 0.0
    per: float = 30.0
    kind: str = "anonymized"
    rho: float = 0.0
    words: str = ""


SYSTEMS = {
    "original": Made(4.0, per=20.0, kind="original"),
    "anon": Made(1.5, per=28.0),
    "anon_dp": Made(0.3, pitch=10.0, content=10.0, per=62.0),
}


def write_params(path: Path, systems: dict[str, Made] = SYSTEMS) -> Params:
    """Write a whole params file for ``systems``."""
    content = {
        "base": {"scale": "made"},
        "systems": {
            name: {
                "kind": made.kind,
                "pitch": "dp" if made.pitch else "plain",
                "content": "gauss" if made.rho else "dp" if made.content else "plain",
            }
            for name, made in systems.items()
        },
        "pitch_variants": {"plain": {}, "dp": {"mechanism": "laplace", "epsilon": 10}},
        "content_variants": {
            "plain": {},
            "dp": {"mechanism": "laplace", "epsilon": 10},
            "gauss": {"mechanism": "gaussian", "rho": 0.01},
        },
        "evaluate": {"replicates": 20},
    }
    params = parse_params(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(params_text(params))
    return params


def make_outputs(
    root: Path,
    systems: dict[str, Made] = SYSTEMS,
    *,
    corpus: dict | None = None,
    speakers: int = 8,
    utterances: int = 6,
    mark: str = "",
    samples: bool = True,
    seed: int = 1,
) -> Params:
    """Write everything up to ``evaluate`` under ``root/outputs``, and ``root/params.yaml``."""
    facts = {**CORPUS, **(corpus or {})}
    for name, made in systems.items():
        out = root / "outputs"
        released = out / "anonymize" / name / "released"
        released.mkdir(parents=True)
        enrolments, trials, speaker_of = _lists(speakers, utterances, mark)
        entries = [Entry(u, f"{k:064x}", *_released(made, 100 + k), s) for k, (u, s) in
                   enumerate(sorted(speaker_of.items()))]  # fmt: skip
        ledger = Ledger.open(purpose="evaluation", system=name, register=open_register(str(root / "ledger")))
        write_ledger(released, ledger.announce(entries))
        write_json(released / "corpus.json", facts)
        finish(released, "anonymize", name)
        _scores(out / "score" / name, name, made, enrolments, trials, speaker_of, seed)
        write_json(
            out / "transcribe" / name / "transcripts.json",
            {"per": _per(made.per).to_json(), "wer": None},
        )
        finish(out / "transcribe" / name, "transcribe", name)
        _samples(out / "samples" / name, name, facts, [t[1] for t in trials][:2] if samples else [], seed)
    return write_params(root / "params.yaml", systems)


def evaluate(root: Path, system: str) -> Path:
    """Run the evaluate stage of one system; return its output."""
    out = root / "outputs"
    run_stage(
        "evaluate",
        root / "params.yaml",
        {
            "scores": out / "score" / system,
            "transcripts": out / "transcribe" / system,
            "released": out / "anonymize" / system / "released",
        },
        {"metrics": out / "evaluate" / system, "flat": root / "metrics" / f"{system}.metrics.json"},
        key=system,
    )
    return out / "evaluate" / system


def finish_outputs(root: Path, systems: dict[str, Made], **options: Any) -> Path:
    """Write everything up to the report of a run, without telling MLflow."""
    make_outputs(root, systems, **options)
    for name in systems:
        evaluate(root, name)
    out = root / "outputs"
    inputs = {"metrics": out / "evaluate", "samples": out / "samples"}
    before = os.environ.get("VOXVEIL_TRACKING", "")
    os.environ["VOXVEIL_TRACKING"] = "off"
    try:
        run_stage("report", root / "params.yaml", inputs, {"report": out / "report"})
    finally:
        os.environ["VOXVEIL_TRACKING"] = before or "off"
    (root / "dvc.yaml").write_text("stages: {}\n")
    return root


def _per(percent: float) -> ErrorRate:
    edits = Edits(substitutions=round(10 * percent), deletions=0, insertions=0, reference=1000)
    return ErrorRate(edits, (percent - 2, percent + 2), "", utterances=32, speakers=8, replicates=100)


def _lists(speakers: int, utterances: int, mark: str):
    names = [f"{mark}spk{s:02d}" for s in range(speakers)]
    of = {f"{name}-{u:02d}": name for name in names for u in range(utterances)}
    enrolments = {name: tuple(f"{name}-{u:02d}" for u in range(2)) for name in names}
    trials = [
        (other, f"{name}-{u:02d}", name == other)
        for name in names
        for u in range(2, utterances)
        for other in names
    ]
    return enrolments, trials, of


def _released(made: Made, frames: int) -> tuple[int, dict[str, Loss]]:
    """Return vectors and losses of an utterance."""
    return (1 if made.words else frames), _losses(made, frames)


def _losses(made: Made, vectors: int) -> dict[str, Loss]:
    def one(epsilon: float, unit: str, sensitivity: float, mechanism: str) -> Loss:
        if not epsilon:
            return Loss("pure", INFINITE, unit, None, "identity", "1")
        return Loss("pure", epsilon, unit, sensitivity, mechanism, "1")

    if made.words:
        streams: dict[str, StreamMechanism] = {"words": RecognizedWords(made.words)}
        if made.pitch:
            streams["contour"] = LaplaceBall(made.pitch, invariants=frozenset())
        return LossRule.of_streams(streams).losses(vectors)
    if made.rho:
        gaussian = Loss("zcdp", INFINITE, "vector", 2.0, "gaussian_l2", "2", rho=made.rho)
        return {"pitch": one(made.pitch, "utterance", 16.0 * vectors, "laplace_cube"), "content": gaussian}
    return {
        "pitch": one(made.pitch, "utterance", 16.0 * vectors, "laplace_cube"),
        "content": one(made.content, "vector", 2.0, "laplace_l1"),
    }


def _scores(out: Path, name: str, made: Made, enrolments, trials, speaker_of, seed: int) -> None:
    rng = stream(seed, "made", name)
    scores = rng.normal(size=len(trials)) + made.leak * np.array([t for _, _, t in trials])
    speakers = sorted(set(speaker_of.values()))
    inputs = [u for s in speakers for u in sorted(speaker_of) if speaker_of[u] == s and u[-2:] >= "02"]
    labels = [speaker_of[u] for u in inputs]
    own = np.array(labels)[:, None] == np.array(speakers)[None]
    ranks = RankScores(
        rng.normal(size=own.shape) + made.leak * own, np.array(inputs), np.array(labels), np.array(speakers)
    )
    state = "original" if made.kind == "original" else "anonymized"
    conditions = Conditions("ecapa", "semi_informed", state, state, state)
    lists = TrialLists(enrolments, tuple(Trial(*trial) for trial in trials))
    write_attack(
        out / "ecapa/semi_informed", Scored(conditions, scores, ranks), lists, speaker_of, short_clips=0
    )
    finish(out, "score", name)


def _samples(out: Path, name: str, facts: dict, utterances: list[str], seed: int) -> None:
    out.mkdir(parents=True)
    rows = []
    for utterance in dict.fromkeys(utterances):
        rng = stream(seed, "sample", name, utterance)
        tone = 0.1 * np.sin(2 * np.pi * 220 * np.arange(8000) / 16000)
        for state in ("original", "anonymized"):
            noisy = tone + 0.01 * rng.normal(size=8000) * (state != "original")
            (out / f"{utterance}.{state}.flac").write_bytes(encode_flac(noisy, utterance)[0])
        names = {state: f"{utterance}.{state}.flac" for state in ("original", "anonymized")}
        rows.append({"utterance": utterance, "sex": "F", "text": "A SENTENCE", **names})
    shown = {name: facts[name] for name in ("name", "synthetic", "public", "revision")}
    write_json(
        out / "samples.json",
        {"format": 1, "system": name, "corpus": shown, "source": "released", "utterances": rows},
    )
    finish(out, "anonymize", name)
