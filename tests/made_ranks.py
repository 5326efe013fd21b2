"""Trainings of a few steps that one process, or several together, can run.

As a program, started by torchrun, it runs them all with the other processes; each writes ``N.json``,
``N.safetensors`` and ``N-NAME.safetensors`` (N its place, NAME a training: its steps) into the folder it is
given, where ``public`` and ``models`` lie.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load, save
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

import numeric_margins
from voxveil.config.features import ContentVariant, PitchVariant, TrainContentParams, TrainPitchParams
from voxveil.config.networks import SpeakerParams, SynthesisParams, TrainVocoderParams
from voxveil.corpus.split import Split
from voxveil.features.content.train import LabelledUtterance, mel_features, train_content
from voxveil.features.extraction import System
from voxveil.features.pitch.train import PitchUtterance, train_pitch
from voxveil.features.speaker.encoder import X_VECTOR, XVectorNetwork
from voxveil.features.speaker.train import train_encoder
from voxveil.runtime.seeding import stream
from voxveil.synthesis.speech import Speech
from voxveil.synthesis.train_acoustic import AcousticData, train_acoustic
from voxveil.synthesis.train_vocoder import train_vocoder
from voxveil.training import ranks
from voxveil.training.checkpoint import model_bytes
from voxveil.training.loop import EarlyStopping, Plan, fit, seeded, use_threads

STEPS, SEED = 4, 3

Trained = tuple[nn.Module, list[dict[str, float]]]


@dataclass
class Steps:
    """What an optimizer got and left at each step; tensors in the order of the model's parameters."""

    gradients: list[list[torch.Tensor]] = field(default_factory=list)
    #: Adam's running means of the gradients.
    means: list[list[torch.Tensor]] = field(default_factory=list)
    weights: list[list[torch.Tensor]] = field(default_factory=list)


@contextmanager
def watched_steps(follow: Sequence[Sequence[torch.Tensor]] = ()) -> Iterator[Steps]:
    """Keep what every optimizer step of the block got and left.

    Args:
        follow: Weights after each step of another training: put in place of those that the step left, so that
            each step is compared from equal weights, and rounding does not grow from step to step.
    """
    steps = Steps()

    def before(optimizer: torch.optim.Optimizer, *_: object) -> None:
        steps.gradients.append([parameter.grad.clone() for parameter in trained(optimizer)])

    def after(optimizer: torch.optim.Optimizer, *_: object) -> None:
        parameters = trained(optimizer)
        steps.means.append([optimizer.state[parameter]["exp_avg"].clone() for parameter in parameters])
        if follow:
            with torch.no_grad():
                for parameter, given in zip(parameters, follow[len(steps.weights)], strict=True):
                    parameter.copy_(given)
        steps.weights.append([parameter.detach().clone() for parameter in parameters])

    hooks = register_optimizer_step_pre_hook(before), register_optimizer_step_post_hook(after)
    try:
        yield steps
    finally:
        for hook in hooks:
            hook.remove()


def trained(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def steps_bytes(steps: Steps) -> bytes:
    return save(
        {
            f"{kind}.{step}.{place}": value
            for kind, found in vars(steps).items()
            for step, values in enumerate(found)
            for place, value in enumerate(values)
        }
    )


def read_steps(data: bytes) -> Steps:
    steps, tensors = Steps(), load(data)
    for name in sorted(tensors, key=lambda name: [int(part) for part in name.split(".")[1:]]):
        kind, step, _ = name.split(".")
        found = getattr(steps, kind)
        if int(step) == len(found):
            found.append([])
        found[-1].append(tensors[name])
    return steps


class Stopped(Exception):
    """Raised in the middle of a training."""


class Toy(nn.Module):
    """Batch norm over frames, and over rows."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = XVectorNetwork(6, 8, 5)
        self.rows = nn.BatchNorm1d(5, affine=False, momentum=None)
        self.last = nn.Linear(5, 1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.last(self.rows(self.frames(frames)))[:, 0]


def toy(
    checkpoints: Path | None = None, stop_at: int | None = None, patience: int = 0
) -> tuple[Toy, list[dict[str, float]], int]:
    """Train a network with batch norm on an odd number of rows; returns the step of the best weights too."""
    with seeded(SEED, "toy"):
        model = Toy()

    def loss_of_step(step: int) -> tuple[torch.Tensor, dict[str, float]]:
        if step == stop_at:
            raise Stopped
        batch = stream(SEED, "batch", step).normal(size=(7, 12, 6)).astype(np.float32)
        frames = torch.from_numpy(batch[ranks.share(len(batch))])
        loss = (model(frames) - frames.mean(dim=(1, 2))).square().mean()
        return ranks.joint_mean(loss, len(frames)), {"rows": float(ranks.total(torch.tensor(len(frames))))}

    judged = iter([3.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    watch = None
    if patience:
        # Only the first process's figures count.
        watch = EarlyStopping(
            model,
            lambda: {"held_out": next(judged) - 10.0 * ranks.rank()},
            judged="held_out",
            patience=patience,
            folder=checkpoints,
        )
    plan = Plan("toy", SEED, 6, 1e-2, checkpoint_seconds=0.0, curve_every=1)
    curve = fit(model, loss_of_step, plan, checkpoints=checkpoints, watch=watch)
    return model, curve, watch.restore() if watch else 0


def resumed(folder: Path) -> Trained:
    """Train, be stopped in the middle, and go on."""
    try:
        toy(folder, stop_at=4)
    except Stopped:
        model, curve, _ = toy(folder)
        return model, curve
    raise RuntimeError("it was not stopped")


def pitch(split: Split) -> Trained:
    """Train the F0 autoencoder through its noise."""
    spoken = [PitchUtterance(u.id, u.speaker, split.f0(u.id)) for u in split]
    params = TrainPitchParams(channels=4, steps=STEPS, batch=5)
    trained = train_pitch(spoken, params, PitchVariant("laplace", 1e5), "dp", SEED)
    return trained.model, trained.curve


def content(split: Split) -> Trained:
    """Train the acoustic model through its noise, in chunks of which some end in padding."""
    spoken = []
    for utterance in split:
        mel = mel_features(split.audio(utterance.id))
        labels = np.arange(len(mel)) // 20 % 3
        spoken.append(LabelledUtterance(utterance.id, utterance.speaker, mel, labels))
    variant = ContentVariant("laplace", 100.0)
    sizes = {"bottleneck": 8, "hidden": 16, "factor": 8, "layers": 2, "batch": 5, "chunk_frames": 70}
    params = TrainContentParams(**sizes, steps=STEPS, warp=0.1)
    trained = train_content(spoken, ("SIL", "A", "B"), (0, 1, 2), params, variant, "dp", SEED)
    return trained.model, trained.curve


def speaker(split: Split) -> Trained:
    """Train an x-vector network with noise in some crops."""
    params = SpeakerParams(channels=8, embedding=8, steps=STEPS, batch=5, crop_seconds=0.5)
    trained = train_encoder(split, params, name="toy", seed=SEED, architecture=X_VECTOR, noise=0.5)
    return trained.encoder._network, trained.curve


def vocoder(split: Split, kind: str) -> Trained:
    """Train a vocoder, and its judges where it has some, with early stopping."""
    params = TrainVocoderParams(
        kind=kind, channels=16, discriminator=4, steps=STEPS, batch=3, crop_frames=20, patience=9
    )
    spoken = split.utterances
    return train_vocoder(Speech(split), spoken[:6], params, SEED, held=spoken[6:])


def acoustic(split: Split, models: Path) -> Trained:
    """Train an acoustic model on content as it is and noisy pitch."""
    system = System.load(models / "pitch/dp", models / "content/plain")
    data = AcousticData(Speech(split), system, lambda audio, name: audio[:16], SEED, "anon")
    params = SynthesisParams(channels=16, layers=2, steps=STEPS, batch=3, crop_frames=90)
    return train_acoustic(data, split.utterances, params, "anon", SEED)


def trainings(folder: Path) -> dict[str, Callable[[Path], Trained]]:
    """Return every training by name; each takes a folder for its checkpoints."""
    split, models = Split(folder / "public" / "extractor"), folder / "models"
    return {
        "toy": lambda _: toy()[:2],
        "resumed": resumed,
        "stopped early": lambda own: toy(own, patience=2)[:2],
        "pitch": lambda _: pitch(split),
        "content": lambda _: content(split),
        "speaker": lambda _: speaker(split),
        "vocoder": lambda _: vocoder(split, "stft"),
        "adversarial": lambda _: vocoder(split, "nsf_gan"),
        "acoustic": lambda _: acoustic(split, models),
    }


def main(folder: Path) -> None:
    """Run them all with the other processes, and write what this one has in the end."""
    numeric_margins.compute_as_asked()
    use_threads(1)
    place, processes = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    curves: dict[str, list[dict[str, float]]] = {}
    weights: dict[str, nn.Module] = {}
    with ranks.joined(place, processes):
        for name, train in trainings(folder).items():
            own = folder / f"checkpoints {name}"
            own.mkdir(exist_ok=True)
            with watched_steps() as steps:
                weights[name], curves[name] = train(own)
            (folder / f"{place}-{name}.safetensors").write_bytes(steps_bytes(steps))
    (folder / f"{place}.safetensors").write_bytes(model_bytes(nn.ModuleDict(weights)))
    (folder / f"{place}.json").write_text(json.dumps(curves))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
