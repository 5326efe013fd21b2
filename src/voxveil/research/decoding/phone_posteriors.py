"""Forward-backward smoothing of phone posteriors with the phone language model.

The best path (:func:`voxveil.research.decoding.phone_model.decode_phones`) maximizes the probability of the
whole phone sequence. The posteriors of this module are per frame. Both read Released posteriors only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.research.decoding.phone_model import MIN_FRAMES, PhoneModel, frame_scores, frames_right
from voxveil.runtime.errors import InputError

__all__ = ["SCALES", "smoothed_posteriors", "tuned_scales"]

#: (acoustic, prior) scales that :func:`tuned_scales` tries: from posteriors of neighbouring frames that
#: say the same to noise that is drawn anew for every frame.
SCALES = tuple((acoustic, prior) for acoustic in (0.3, 0.5, 0.7, 1.0) for prior in (0.2, 0.5, 1.0))

Floats = NDArray[np.float64]


def smoothed_posteriors(
    log_posteriors: NDArray[Any],
    model: PhoneModel,
    *,
    acoustic_scale: float = 0.5,
    prior_scale: float = 0.5,
) -> NDArray[np.float32]:
    """Return log p(phone of frame k | all frames) under the phone model (Rabiner 1989, III B).

    Args:
        log_posteriors: (K, P) natural logarithms of Released content, columns as ``model.phones``.
        model: Counted on public alignments.
        acoustic_scale: Weight of a frame against the model.
        prior_scale: Weight of the log prior that is taken off.

    Returns:
        (K, P) natural logarithms; each row's exponentials sum to 1.
    """
    scores = frame_scores(log_posteriors, model, acoustic_scale, prior_scale)
    frames, count = scores.shape
    if not frames:
        return np.zeros((0, count), np.float32)
    seen = np.exp(scores - scores.max(axis=1, keepdims=True))
    stay = np.exp(model.log_stay)
    # (b, a, c): leave b for c, having come from a.
    follow = np.exp(model.log_next).transpose(1, 0, 2) * (1.0 - stay)[:, None, None]
    forward = np.empty((frames, count + 1, count, MIN_FRAMES), np.float32)
    now = np.zeros((count + 1, count, MIN_FRAMES))
    now[count] = (np.exp(model.log_priors) * seen[0])[:, None]
    now /= now.sum()
    forward[0] = now
    for frame in range(1, frames):
        moved = np.zeros_like(now)
        moved[:count, :, 0] = (now[:, :, -1].T[:, None, :] @ follow)[:, 0]
        moved[:, :, 1:-1] = now[:, :, :-2]
        moved[:, :, -1] = now[:, :, -2] + now[:, :, -1] * stay
        now = moved * seen[frame][:, None]
        now /= now.sum()
        forward[frame] = now
    result = np.empty((frames, count))
    after = np.ones((count + 1, count, MIN_FRAMES))
    for frame in range(frames - 1, -1, -1):
        result[frame] = (forward[frame] * after).sum(axis=(0, 2))
        ahead = after * seen[frame][:, None]
        after = np.empty_like(ahead)
        after[:, :, :-1] = ahead[:, :, 1:]
        onward = (follow @ ahead[:count, :, 0][:, :, None])[:, :, 0].T
        after[:, :, -1] = ahead[:, :, -1] * stay + onward
        after /= after.max()
    result /= result.sum(axis=1, keepdims=True)
    return np.log(np.maximum(result, 1e-30)).astype(np.float32)


def tuned_scales(
    labelled: Sequence[tuple[NDArray[Any], NDArray[np.integer[Any]]]], model: PhoneModel
) -> Mapping[str, float]:
    """Return the scales with which :func:`smoothed_posteriors` gets the most frames right.

    Args:
        labelled: (log posteriors, phone indices) of utterances of training speakers: never of the test.
        model: The phone model.

    Returns:
        ``acoustic_scale`` and ``prior_scale``, to be handed on by name.
    """
    if not labelled:
        raise InputError("tuning the scales needs at least one utterance")
    tried = [{"acoustic_scale": acoustic, "prior_scale": prior} for acoustic, prior in SCALES]
    truth = [labels for _, labels in labelled]
    right = [
        frames_right([smoothed_posteriors(one, model, **scales).argmax(axis=1) for one, _ in labelled], truth)
        for scales in tried
    ]
    return tried[int(np.argmax(right))]
