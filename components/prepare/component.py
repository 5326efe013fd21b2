"""The stage prepare as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def prepare(
    params: dict,
    public: Output[Dataset],
    public_digest: dsl.OutputPath(str),
    private: Output[Dataset],
    private_digest: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Read or speak the corpus, split it, track F0, draw trials."""
    return stage_container("prepare")
