"""Stand-ins for stages whose work is shared: they do nothing but say which part of it is theirs."""

from __future__ import annotations

import hashlib

from voxveil.corpus.split import SplitWriter, Utterance
from voxveil.privacy import Entry, Identity, Ledger, write_ledger
from voxveil.runtime.atomic import write_json
from voxveil.stages.context import StageContext

ITEMS = tuple(Utterance(f"s{n % 2}-{n}", f"s{n % 2}", "F", 400 + 10 * n) for n in range(7))


class Anonymize:
    """A stage anonymize whose speech is the name of each utterance; it announces as the real one does."""

    def run(self, context: StageContext) -> None:
        """Write the utterances of this share."""
        chosen = context.share.of({item.id: item.samples for item in ITEMS}, "made")
        own = [item for item in ITEMS if item.id in chosen]
        losses = {"content": Identity("vector").loss_for((3, 2))}
        entries = [
            Entry(item.id, hashlib.sha256(item.id.encode()).hexdigest(), 3, losses, item.speaker)
            for item in own
        ]
        release = Ledger.open(purpose="evaluation", system=context.key).announce(entries)
        for port in ("released", "attacker"):
            with SplitWriter(context.outputs[port]) as writer:
                for item in own:
                    writer.add(item, f"{port} {item.id}".encode())
            write_json(context.outputs[port] / "corpus.json", {})
            counts = {"utterances": len(own), "clipped_samples": 2, "clipped_utterances": 1}
            write_json(context.outputs[port] / "summary.json", {"format": 1, "system": context.key, **counts})
            context.mark_part(port, [item.id for item in ITEMS], chosen)
        write_ledger(context.outputs["released"], release)
        context.mark_part("samples", [], ())
        write_json(context.outputs["samples"] / "samples.json", {"format": 1, "utterances": []})


class Score:
    """A stage score that attacks nobody, in three scenarios."""

    def run(self, context: StageContext) -> None:
        """Write the scenarios of this share."""
        names = ["a", "b", "c"]
        own = names[context.share.number - 1 :: context.share.count]
        context.mark_part("scores", names, own)
        for name in own:
            write_json(context.outputs["scores"] / "ecapa" / name / "scores.json", name)
