"""The pipeline files under review: what 'voxveil pipeline compile' gives.

Write them anew after a change of components, pipeline or parameters, and review the difference:
    python tests/pipelines/goldens.py
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from voxveil.config import Params
from voxveil.config.compose import compose
from voxveil.kubeflow.compile import compile_pipeline
from voxveil.kubeflow.resources import load_images

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


@cache
def compiled(scale: str, name: str = CHAIN) -> str:
    """Compile one scale of a pipeline with the fixture images, once per process."""
    return compile_pipeline(ROOT, params_of(scale), load_images(HERE / "images.lock.json"), name)


def params_of(scale: str) -> Params:
    """Return the parameters of a scale, those of the shares included."""
    overlay = "tiny" if scale == SHARDS else scale
    return compose(ROOT / "params" / f"{overlay}.yaml", CHANGES.get(scale))


def golden(scale: str, name: str = CHAIN) -> Path:
    """Return the file kept for one scale of a pipeline."""
    return HERE / "golden" / f"{name}-{scale}.yaml"


if __name__ == "__main__":
    for name, scale in KEPT:
        golden(scale, name).write_text(compiled(scale, name), encoding="utf-8")
        print(golden(scale, name))
