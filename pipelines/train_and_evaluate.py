"""The whole chain on Kubeflow: prepare, train, anonymize, attack, measure, report.

Systems and variants are unrolled when the pipeline is compiled, so a name is known to every
task; all values come in one parameter, ``params``. Artifacts travel with their digests: the
task that reads one refuses another content.
"""

from typing import Any

from components.anonymize.component import anonymize
from components.bundle.component import bundle
from components.evaluate.component import evaluate
from components.prepare.component import prepare
from components.report.component import report
from components.score.component import score
from components.train_attacker.component import train_attacker
from components.train_content.component import train_content
from components.train_pitch.component import train_pitch
from components.train_speaker.component import train_speaker
from components.train_synthesis.component import train_synthesis
from components.train_vocoder.component import train_vocoder
from components.transcribe.component import transcribe
from kfp import dsl

from voxveil.config import Params, original_system
from voxveil.config.compose import to_mapping
from voxveil.kubeflow.placement import Place

NAME = "voxveil-train-and-evaluate"
DESCRIPTION = "Anonymize speech with every system, attack it, and measure what identity is left."


def build(values: Params, place: Place) -> Any:
    """Return the pipeline for the systems and variants of ``values``.

    Args:
        values: Parameters; their names shape the graph, their values are defaults of ``params``.
        place: Gives a task its image, resources and node.
    """

    @dsl.pipeline(name=NAME, description=DESCRIPTION)
    def train_and_evaluate(params: dict = to_mapping(values)):  # noqa: B008
        corpus = place(prepare(params=params), "prepare")
        if values.prepare.source != "embedded":
            # The corpus lies outside the store, where Kubeflow cannot see that it changed.
            corpus.set_caching_options(False)
        public = take("public", corpus)
        private = take("private", corpus)

        pitch = {
            name: place(train_pitch(params=params, key=name, **public), "train_pitch", name)
            for name in sorted(values.train_pitch.variants)
        }
        content = {
            name: place(train_content(params=params, key=name, **public), "train_content", name)
            for name in sorted(values.train_content.variants)
        }
        speaker = take("speaker", place(train_speaker(params=params, **public), "train_speaker"), "model")
        vocoder = take("vocoder", place(train_vocoder(params=params, **public), "train_vocoder"), "model")
        recognizer = take("recognizer", content[values.transcribe.variant], "model")

        metrics, samples = [], []
        original = original_system(values)
        original_attacker: dict[str, Any] = {}
        # The original first: its attacker serves the scenarios in which nobody trains anew.
        for system, parts in sorted(values.systems.items(), key=lambda each: (each[0] != original, each[0])):
            own = {"params": params, "key": system}
            extractors = {
                **take("pitch", pitch[parts.pitch], "model"),
                **take("content", content[parts.content], "model"),
                **speaker,
            }
            acoustic = place(train_synthesis(**own, **public, **extractors), "train_synthesis", system)
            parts_of_model = {**extractors, **vocoder, **take("synthesis", acoustic, "model")}
            model = place(bundle(**own, **parts_of_model), "bundle", system)
            speech = place(anonymize(**own, **take("model", model), **public, **private), "anonymize", system)
            attacker = place(train_attacker(**own, **take("attacker", speech)), "train_attacker", system)

            released = take("released", speech)
            if system == original:
                original_attacker = take("original_attacker", attacker, "model")
            scores = place(
                score(
                    **own, **take("attacker", attacker, "model"), **original_attacker, **released, **private
                ),
                "score",
                system,
            )
            transcripts = place(transcribe(**own, **recognizer, **released, **private), "transcribe", system)
            measured = place(
                evaluate(**own, **take("scores", scores), **take("transcripts", transcripts), **released),
                "evaluate",
                system,
            )
            metrics.append(measured.outputs["metrics_location"])
            samples.append(speech.outputs["samples_location"])

        place(report(params=params, metrics=metrics, samples=samples), "report")

    return train_and_evaluate


def take(name: str, task: Any, output: str = "") -> dict[str, Any]:
    """Return the arguments that hand an output of ``task``, with its digest, to the input ``name``."""
    output = output or name
    return {name: task.outputs[output], f"{name}_digest": task.outputs[f"{output}_digest"]}
