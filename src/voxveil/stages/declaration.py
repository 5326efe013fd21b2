"""The form in which a stage is declared: its inputs and outputs, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from voxveil.config import Params

__all__ = ["Keyed", "Kind", "MadeFor", "Port", "Secrecy", "Service", "StageSpec"]

Kind = Literal["Dataset", "Model", "Metrics", "HTML"]
Keyed = Literal["", "system", "pitch_variant", "content_variant"]
MadeFor = Literal["", "key", "pitch", "content", "recognizer", "original"]
Secrecy = Literal["public", "private", "released"]
Service = Literal["mlflow", "store", "ledger", "webhook", "https"]


@dataclass(frozen=True)
class Port:
    """One declared input or output: a folder with ``_DONE.json``, or a copy of one file of another output.

    Attributes:
        name: As in ``--in NAME=PATH``.
        kind: Kubeflow artifact type.
        secrecy: ``private`` artifacts never leave the private store.
        made_by: For an input: the stage whose output it must be.
        made_for: For an input: the key it must have been made for: that of this run, the system's pitch or
            content variant, the recognizer's variant, the original system, or none.
        output: For an input: the output port it must come from, where the stage has several.
        many: The folder holds one finished output per system (fan-in).
        shares: The folder holds one finished output per share of one stage's work (fan-in).
        copy_of: ``OUTPUT/FILE``: this output is a single file, copied from that one so that DVC can show it
            (``{key}`` stands for the stage's key).
        path: For an output: its path in dvc.yaml, where that does not follow from the names of stage, key and
            port (``${key}`` stands for the stage's key).
        located: For an output: Kubeflow also hands it on as a text ``KEY URI DIGEST``, which others collect.
        holds: For an output: what is in it, for the component's document.
    """

    name: str
    kind: Kind
    secrecy: Secrecy = "public"
    made_by: str = ""
    made_for: MadeFor = ""
    output: str = ""
    many: bool = False
    shares: bool = False
    copy_of: str = ""
    path: str = ""
    located: bool = False
    holds: str = ""


@dataclass(frozen=True)
class StageSpec:
    """What a stage reads, writes and needs.

    Attributes:
        name: Stem of its module, component and section.
        help: What it does, in a line.
        inputs: Its inputs.
        outputs: Its outputs.
        keyed: What it runs for one by one; empty where it runs once.
        sections: Sections of the parameters that it reads as a whole.
        packages: Code its results depend on, relative to the package, apart from its module.
        files: Further files it depends on, as dvc.yaml names them.
        base: What it reads of section ``base``. The name of the scale is shown in results and decides none.
        torch: It computes with PyTorch.
        gpu: It takes a GPU where there is one.
        cacheable: Kubeflow may take its outputs from an earlier run.
        shared: Several pods can each do a share of its work.
        services: What its pod may use: the MLflow server, the S3 store, the register of releases, the
            webhook, or HTTPS to anywhere. That a training uses MLflow, and that what collects from several
            tasks uses the store, is implied.
        collects: Lists of texts that Kubeflow hands to it beside its inputs, with what each holds.
    """

    name: str
    help: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    keyed: Keyed = ""
    sections: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    base: tuple[str, ...] = ("base.seed", "base.threads")
    torch: bool = False
    gpu: bool = False
    cacheable: bool = True
    shared: bool = False
    services: tuple[Service, ...] = ()
    collects: tuple[tuple[str, str], ...] = ()

    @property
    def table(self) -> str:
        """Section of the parameters that has a name for each run of the stage; empty where it runs once."""
        return f"{self.keyed}s" if self.keyed else ""

    def keys(self, params: Params) -> list[str]:
        """Return the names of the stage's runs; none where it runs once, without a name."""
        return list(getattr(params, self.table)) if self.table else []

    @property
    def command(self) -> str:
        """The stage's name on the command line."""
        return self.name.replace("_", "-")

    @property
    def trains(self) -> bool:
        """Whether the stage has a training curve."""
        return any(port.name == "curve" for port in self.outputs)

    def uses(self, service: Service) -> bool:
        """Whether its pod may use a service."""
        collecting = any(port.many or port.shares for port in self.inputs)
        implied = {"mlflow": self.trains, "store": collecting}
        return service in self.services or implied.get(service, False)
