"""The tasks from prepared speech to the metrics of every system, shared by the pipelines."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from components.bundle.component import bundle
from components.evaluate.component import evaluate
from components.prepare.component import prepare
from components.report.component import report
from components.train_attacker.component import train_attacker
from components.train_content.component import train_content
from components.train_pitch.component import train_pitch
from components.train_speaker.component import train_speaker
from components.train_synthesis.component import train_synthesis
from components.train_vocoder.component import train_vocoder
from components.transcribe.component import transcribe
from pipelines.parts.spread import spread

from voxveil.config import Params, original_system


@dataclass
class System:
    """The tasks of one system that later tasks take from."""

    model: Any
    speech: Any
    scores: Any
    measured: Any


@dataclass
class Chain:
    """The tasks of every system, and the report of them all."""

    systems: dict[str, System]
    report: Any


def prepared(params: Any, values: Params, configure: Callable[..., Any]) -> Any:
    """Return the task that prepares the corpus which the parameters name."""
    corpus = configure(prepare(params=params), "prepare")
    if values.prepare.source != "embedded":
        # The corpus lies outside the store, where Kubeflow cannot see that it changed.
        corpus.set_caching_options(False)
    return corpus


def chain(params: Any, values: Params, configure: Callable[..., Any], corpus: Any) -> Chain:
    """Train, anonymize, attack and measure every system; the report comes last.

    Args:
        params: The pipeline's parameter.
        values: Parameters whose names shape the graph.
        configure: Gives a task its image, resources and node.
        corpus: A task with the outputs of prepare.
    """
    public = take("public", corpus)
    private = take("private", corpus)

    pitch = {
        name: configure(train_pitch(params=params, key=name, **public), "train_pitch", name)
        for name in sorted(values.pitch_variants)
    }
    content = {
        name: configure(train_content(params=params, key=name, **public), "train_content", name)
        for name in sorted(values.content_variants)
    }
    encoder = configure(train_speaker(params=params, **public), "train_speaker")
    waveform = configure(train_vocoder(params=params, **public), "train_vocoder")
    speaker, vocoder = take("speaker", encoder, "model"), take("vocoder", waveform, "model")
    trained = [*pitch.values(), *content.values(), encoder, waveform]
    recognizer = take("recognizer", content[values.transcribe.variant], "model")

    systems: dict[str, System] = {}
    original = original_system(values)
    original_attacker: dict[str, Any] = {}
    # The original first: its attacker serves the scenarios in which nobody trains anew.
    for system, parts in sorted(values.systems.items(), key=lambda named: (named[0] != original, named[0])):
        identity = {"params": params, "key": system}
        extractors = {
            **take("pitch", pitch[parts.pitch], "model"),
            **take("content", content[parts.content], "model"),
            **speaker,
        }
        acoustic = configure(train_synthesis(**identity, **public, **extractors), "train_synthesis", system)
        parts_of_model = {**extractors, **vocoder, **take("synthesis", acoustic, "model")}
        model = configure(bundle(**identity, **parts_of_model), "bundle", system)
        inputs = {**take("model", model), **public, **private}
        speech = spread("anonymize", system, inputs, params, values, configure)
        attacker = configure(train_attacker(**identity, **take("attacker", speech)), "train_attacker", system)
        trained += [acoustic, attacker]

        released = take("released", speech)
        if system == original:
            original_attacker = take("original_attacker", attacker, "model")
        trained_on = {**take("attacker", attacker, "model"), **original_attacker}
        attacked = {**trained_on, **released, **public, **private}
        scores = spread("score", system, attacked, params, values, configure)
        transcripts = configure(
            transcribe(**identity, **recognizer, **released, **private), "transcribe", system
        )
        measured = configure(
            evaluate(**identity, **take("scores", scores), **take("transcripts", transcripts), **released),
            "evaluate",
            system,
        )
        systems[system] = System(model, speech, scores, measured)

    page = configure(
        report(
            params=params,
            metrics=[outputs.measured.outputs["metrics_location"] for outputs in systems.values()],
            samples=[outputs.speech.outputs["samples_location"] for outputs in systems.values()],
            training=[task.outputs["fingerprint"] for task in trained],
            scores=[outputs.scores.outputs["scores_location"] for outputs in systems.values()],
        ),
        "report",
    )
    return Chain(systems, page)


def take(name: str, task: Any, output: str = "") -> dict[str, Any]:
    """Return the arguments that hand an output of ``task``, with its digest, to the input ``name``."""
    output = output or name
    return {name: task.outputs[output], f"{name}_digest": task.outputs[f"{output}_digest"]}
