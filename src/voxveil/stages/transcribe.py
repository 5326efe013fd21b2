"""Stage transcribe: phone errors, word errors and pitch correlation of the released speech.

Phones: the content variant ``transcribe.variant`` with a phone loop. Words: ``transcribe.words``;
with them comes the verdict whether the speech is understood. Intonation: F0 against the original's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voxveil.config.fields import listed
from voxveil.corpus.phones import SILENCE
from voxveil.corpus.split import Split
from voxveil.features.content.extractor import ContentExtractor
from voxveil.features.content.labels import require_phones
from voxveil.features.pitch.yaapt import track_f0
from voxveil.privacy import PublicNoise
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.runtime.seeding import stream
from voxveil.runtime.workers import in_processes
from voxveil.stages.context import StageContext
from voxveil.tracking.models.fetching import locate_pretrained
from voxveil.utility.decode import decode_phones
from voxveil.utility.edits import Edits, ErrorRate, count_edits, error_rate, total
from voxveil.utility.intelligibility import permuted_edits, rule_text, understood
from voxveil.utility.naturalness import MOS_SPREAD, WORD_SPREAD, find_outliers, naturalness_of
from voxveil.utility.pitch import evenly, mean_correlation, pitch_correlation
from voxveil.utility.transcripts import NORMALIZATION, normalize_words
from voxveil.utility.word_recognizer import Recognition, words_in

__all__ = ["run"]

#: A recognizer without noise that gets more than this wrong of unprotected speech is set up wrongly.
_LARGEST_ORIGINAL = 90.0


def run(context: StageContext) -> None:
    """Recognize every private utterance of the released speech and count its errors."""
    params = context.params.transcribe
    private = Split(context.inputs["private"] / "private")
    released = Split(context.inputs["released"])
    require_phones(private, "transcribe")
    released.require(utterance.id for utterance in private)
    recognizer = ContentExtractor.load(context.inputs["recognizer"])
    per, rows = _phones(context, recognizer, private, released)
    _require_sane(context, per, "phone errors", noisy=recognizer.loss["mechanism"] != "identity")
    wer: dict[str, Any] | None = None
    edits: dict[str, Edits] = {}
    if params.words != "none":
        wer, edits, words = _words(context, private, released)
        for item, found in words.items():
            rows[item]["words"] = found
    write_json(
        context.outputs["transcripts"] / "transcripts.json",
        {
            "format": 1,
            "system": context.key,
            "recognizer": {"variant": params.variant, "loss": recognizer.loss},
            "per": per.to_json(),
            "wer": wer,
            "pitch": _pitch(context, private, released),
            "naturalness": _naturalness(context, private, released, rows),
            "outliers": _outliers(edits, rows),
            "utterances": rows,
        },
    )


def _phones(
    context: StageContext, recognizer: ContentExtractor, private: Split, released: Split
) -> tuple[ErrorRate, dict[str, dict[str, Any]]]:
    seed = context.params.base.seed
    rows: dict[str, dict[str, Any]] = {}
    edits: dict[str, Edits] = {}
    progress = context.progress("phones", len(private))
    for count, utterance in enumerate(private, 1):
        item = utterance.id
        reference = [phone.label for phone in private.phones(item) if phone.label != SILENCE]
        for label in reference:
            if label not in recognizer.phones:
                raise InputError(
                    f"utterance {item}: phone {label!r} is not among those of the recognizer,"
                    f" {' '.join(recognizer.phones)}"
                )
        noise = PublicNoise(seed, "transcribe", context.key, item)
        content = recognizer.release(released.audio(item), noise).value
        decoded = decode_phones(recognizer.log_posteriors(content), recognizer.phones)
        edits[item] = count_edits(reference, decoded)
        rows[item] = _row(edits[item], decoded, reference)
        progress.update(count)
    return _rate(context, edits, private), rows


def _words(
    context: StageContext, private: Split, released: Split
) -> tuple[dict[str, Any], dict[str, Edits], dict[str, dict[str, Any]]]:
    """Return the word errors of all, each subset and the judged subsets, and errors and row by utterance."""
    params, seed = context.params.transcribe, context.params.base.seed
    machine = read_json(context.inputs["private"] / "corpus.json")["machine_transcripts"]
    said = {utterance.id: normalize_words(utterance.text) for utterance in private}
    without = [item for item, reference in said.items() if not reference]
    if without:
        raise InputError(
            f"utterance {without[0]}: has no transcript ({len(without)} of {len(said)});"
            " word errors need them (transcribe.words: none goes without)"
        )
    recognized: dict[str, list[str]] = {}
    progress = context.progress("words", len(private))
    recognition = _recognition(context)
    name = recognition.name
    flacs = [(recognition, utterance.id, released.flac(utterance.id)) for utterance in private]
    for count, (item, text) in enumerate(zip(said, in_processes(words_in, flacs, params.workers)), 1):
        recognized[item] = normalize_words(text)
        progress.update(count)
    edits = {item: count_edits(said[item], recognized[item]) for item in said}
    whole = _rate(context, edits, private)
    _require_sane(context, whole, "word errors", noisy=False)
    subsets: dict[str, list[str]] = {}
    for utterance in private:
        subsets.setdefault(utterance.subset, []).append(utterance.id)
    judged = _judged(listed(params.judged_subsets), subsets)
    rate = _rate(context, {item: edits[item] for item in judged}, private)
    permuted = total(
        permuted_edits({i: said[i] for i in judged}, {i: recognized[i] for i in judged}, seed)
    ).rate
    verdict = understood(rate, float("nan") if permuted is None else permuted)
    found = {
        **whole.to_json(),
        "recognizer": name,
        "model": recognition.facts,
        "normalisation": NORMALIZATION,
        "subsets": {
            name: {
                **_rate(context, {item: edits[item] for item in items}, private).to_json(),
                "transcripts": "machine" if name in machine else "true",
            }
            for name, items in sorted(subsets.items())
        },
        "judged": {
            **rate.to_json(),
            "subsets": sorted({private[item].subset for item in judged}),
            "permuted": permuted,
            "understood": verdict.understood,
            "because": verdict.reason,
            "rule": rule_text(),
        },
    }
    return found, edits, {item: _row(edits[item], recognized[item], said[item]) for item in said}


def _row(edits: Edits, recognized: Sequence[str], reference: Sequence[str]) -> dict[str, Any]:
    """Return the errors of one utterance with what was recognized and what was said."""
    return {**edits.to_json(), "heard": " ".join(recognized), "said": " ".join(reference)}


def _recognition(context: StageContext) -> Recognition:
    """Return the word recognizer, with the folder of an imported one."""
    params = context.params.transcribe
    if params.words == "pocketsphinx":
        return Recognition()
    if not params.recognizer:
        raise ParamsError(
            f"transcribe.recognizer: is empty; transcribe.words: {params.words} needs an imported model of"
            " kind recognizer ('voxveil model import')"
        )
    model = locate_pretrained(params.recognizer, "recognizer", "transcribe.recognizer")
    if params.words == "whisper" and model.architecture != "faster_whisper":
        raise ParamsError(
            f"transcribe.recognizer: {params.recognizer}: is a {model.architecture}, must be a faster_whisper"
            " for transcribe.words: whisper; transcribe.words: imported takes every architecture"
        )
    return Recognition(params.language, model)


def _naturalness(
    context: StageContext, private: Split, released: Split, rows: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the mean predicted MOS by judge, with its interval, and note each utterance's in its row."""
    params = context.params.transcribe
    found: dict[str, Any] = {}
    for text in listed(params.naturalness):
        model = locate_pretrained(text, "naturalness", "transcribe.naturalness")
        judge = model.architecture
        if judge in found:
            raise ParamsError(f"transcribe.naturalness: {judge} stands twice; must be each judge once")
        items = [(str(model.folder), utterance.id, released.flac(utterance.id)) for utterance in private]
        progress = context.progress(f"naturalness by {judge}", len(items))
        values = []
        for count, value in enumerate(in_processes(naturalness_of, items, params.workers), 1):
            values.append(value)
            progress.update(count)
        for utterance, value in zip(private, values, strict=True):
            rows[utterance.id].setdefault("naturalness", {})[judge] = value
        draws = stream(context.params.base.seed, "naturalness", "bootstrap")
        speakers = [utterance.speaker for utterance in private]
        mean = mean_correlation(values, speakers, draws, params.replicates)
        found[judge] = {**mean, "unit": "MOS", "model": model.facts()}
    return found


def _outliers(edits: Mapping[str, Edits], rows: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the utterances that fall out of the rest, by what was measured, the worst first.

    Args:
        edits: Word errors by utterance; empty where no words were recognized.
        rows: Results by utterance, with the naturalness by each judge.
    """
    found: dict[str, list[str]] = {}
    words = {item: rate for item, count in edits.items() if (rate := count.rate) is not None}
    if words:
        found["words"] = find_outliers(words, worse="higher", least_spread=WORD_SPREAD)
    judges = {judge for row in rows.values() for judge in row.get("naturalness", {})}
    for judge in sorted(judges):
        values = {item: row["naturalness"][judge] for item, row in rows.items()}
        found[judge] = find_outliers(values, worse="lower", least_spread=MOS_SPREAD)
    return found


def _pitch(context: StageContext, private: Split, released: Split) -> dict[str, Any] | None:
    """Return the pitch correlation of some utterances with its interval, or None where it is off."""
    params = context.params.transcribe
    if not params.pitch_utterances:
        return None
    chosen = evenly(private.utterances, params.pitch_utterances)
    progress = context.progress("pitch", len(chosen))
    values = []
    for count, utterance in enumerate(chosen, 1):
        released_f0 = track_f0(released.audio(utterance.id))
        values.append(pitch_correlation(private.f0(utterance.id), released_f0))
        progress.update(count)
    draws = stream(context.params.base.seed, "pitch_correlation", "bootstrap")
    return mean_correlation(values, [u.speaker for u in chosen], draws, params.replicates)


def _judged(names: Sequence[str], subsets: Mapping[str, Sequence[str]]) -> list[str]:
    for name in names:
        if name not in subsets:
            raise InputError(
                f"transcribe.judged_subsets: no released subset {name!r}; there are: {', '.join(subsets)}"
            )
    return [item for name in names or subsets for item in subsets[name]]


def _rate(context: StageContext, edits: Mapping[str, Edits], private: Split) -> ErrorRate:
    speakers = {utterance.id: utterance.speaker for utterance in private}
    replicates = context.params.transcribe.replicates
    return error_rate(edits, speakers, replicates=replicates, seed=context.params.base.seed)


def _require_sane(context: StageContext, rate: ErrorRate, what: str, *, noisy: bool) -> None:
    if context.system.kind != "original" or noisy or rate.value is None:
        return
    if rate.value > _LARGEST_ORIGINAL:
        raise InputError(
            f"{context.label}: {rate.value:.1f} % {what} on unprotected speech;"
            f" above {_LARGEST_ORIGINAL:g} % the recognizer (transcribe.variant) or its references are wrong"
        )
