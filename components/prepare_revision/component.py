"""The step prepare_revision as a Kubeflow component."""

from kfp import dsl
from kfp.dsl import Dataset, Output

from voxveil.kubeflow.container import stage_container


@dsl.container_component
def prepare_revision(
    params: dict,
    repository: str,
    dataset: str,
    revision: str,
    public: Output[Dataset],
    public_digest: dsl.OutputPath(str),
    private: Output[Dataset],
    private_digest: dsl.OutputPath(str),
    commit: dsl.OutputPath(str),
) -> dsl.ContainerSpec:
    """Fetch one version of a dataset by DVC and prepare it; refuse what is not declared public."""
    return stage_container("prepare_revision")
