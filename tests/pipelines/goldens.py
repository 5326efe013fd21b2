"""The pipeline files under review: what 'voxveil pipeline compile' gives for each scale.

Write them anew after a change of components, pipeline or parameters, and review the difference:
    python tests/pipelines/goldens.py
"""

from __future__ import annotations

from pathlib import Path

from voxveil.config.compose import compose
from voxveil.kubeflow.compile import compile_pipeline
from voxveil.kubeflow.resources import load_images

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCALES = ("tiny", "quickstart")


def compiled(scale: str) -> str:
    """Compile one scale with the fixture images."""
    return compile_pipeline(
        ROOT, compose(ROOT / "params" / f"{scale}.yaml"), load_images(HERE / "images.lock.json")
    )


def golden(scale: str) -> Path:
    """Return the file kept for one scale."""
    return HERE / "golden" / f"train_and_evaluate-{scale}.yaml"


if __name__ == "__main__":
    for scale in SCALES:
        golden(scale).write_text(compiled(scale), encoding="utf-8")
        print(golden(scale))
