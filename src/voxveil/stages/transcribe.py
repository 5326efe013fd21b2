"""Stage transcribe: what a phone recogniser makes of the released speech of every trial."""

from __future__ import annotations

from voxveil.content.extractor import ContentExtractor
from voxveil.content.labels import require_phones
from voxveil.corpus.phones import SILENCE
from voxveil.corpus.split import Split
from voxveil.corpus.trials import read_trials
from voxveil.errors import InputError
from voxveil.privacy import PublicNoise
from voxveil.stages.io import StageContext
from voxveil.storage.atomic import write_json
from voxveil.training.progress import Progress
from voxveil.utility.decode import decode_phones
from voxveil.utility.edits import Edits, count_edits
from voxveil.utility.per import ErrorRate, error_rate

__all__ = ["run"]

#: A recogniser without noise that gets more than this wrong of unprotected speech is set up wrongly.
_LARGEST_ORIGINAL = 90.0


def run(context: StageContext) -> None:
    """Recognise every trial utterance of the released speech and count its errors."""
    params, seed = context.params.transcribe, context.params.base.seed
    private = Split(context.inputs["private"] / "private")
    require_phones(private, "transcribe")
    speakers = {utterance.id: utterance.speaker for utterance in private}
    trials = read_trials(context.inputs["private"] / "trials", speakers).trial_utterances
    released = Split(context.inputs["released"])
    recognizer = ContentExtractor.load(context.inputs["recognizer"])
    rows: dict[str, dict[str, object]] = {}
    edits: dict[str, Edits] = {}
    progress = Progress(f"transcribe[{context.key}]", len(trials), "utterance")
    for count, item in enumerate(trials, 1):
        reference = [phone.label for phone in private.phones(item) if phone.label != SILENCE]
        for label in reference:
            if label not in recognizer.phones:
                raise InputError(f"utterance {item}: the recognizer has no phone {label!r}")
        noise = PublicNoise(seed, "transcribe", context.key, item)
        content = recognizer.release(released.audio(item), noise).value
        heard = decode_phones(recognizer.log_posteriors(content), recognizer.phones)
        edits[item] = count_edits(reference, heard)
        rows[item] = {**edits[item].to_json(), "heard": " ".join(heard), "said": " ".join(reference)}
        progress.update(count)
    rate = error_rate(edits, speakers, replicates=params.replicates, seed=seed)
    _require_sane(context, recognizer, rate)
    write_json(
        context.outputs["transcripts"] / "transcripts.json",
        {
            "format": 1,
            "system": context.key,
            "recognizer": {"variant": params.variant, "loss": recognizer.loss},
            "per": rate.to_json(),
            "utterances": rows,
        },
    )


def _require_sane(context: StageContext, recognizer: ContentExtractor, rate: ErrorRate) -> None:
    noisy = recognizer.loss["mechanism"] != "identity"
    if context.system.kind != "original" or noisy or rate.value is None:
        return
    if rate.value > _LARGEST_ORIGINAL:
        raise InputError(
            f"transcribe[{context.key}]: {rate.value:.1f} % phone errors on unprotected speech;"
            f" above {_LARGEST_ORIGINAL:g} % the recognizer (transcribe.variant) or its references are wrong"
        )
