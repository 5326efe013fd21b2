"""Stage score: scores of the trials and of the pooled rank protocol, by every attacker.

Every attacker that was trained attacks in three scenarios (:mod:`voxveil.attack.scenarios`): ignorant,
lazy-informed and semi-informed. The original system has one row, which is called semi-informed too:
attacker, enrolment and trials original. The transcripts of the same trials are attacked too, which is the row
"the words alone" of tables. A share of the work is some of the scenarios: the strongest seed
and the fusion are decided inside one, from scores that no file holds in full precision.
"""

from __future__ import annotations

from collections.abc import Sequence

from voxveil.attack.attackers.registry import find_attackers
from voxveil.attack.fusion import Fusion
from voxveil.attack.rank import draw_rank_protocol
from voxveil.attack.scenarios import Plan, Scenario, check_attackers, run_scenarios, write_attack
from voxveil.attack.transcripts import score_transcripts, transcripts_of, write_words_alone
from voxveil.corpus.split import Split
from voxveil.corpus.trials import read_trials
from voxveil.features.speaker.clips import MINIMUM_SAMPLES
from voxveil.metrics.data import TRANSCRIPTS
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.context import StageContext

__all__ = ["run"]


def run(context: StageContext) -> None:
    """Write ``ATTACKER/SCENARIO/`` with scores, ranks, lists and conditions."""
    scores = context.outputs["scores"]
    where = context.inputs["attacker"]
    attackers = find_attackers(where)
    released = Split(context.inputs["released"])
    private = Split(context.inputs["private"] / "private")
    speaker_of = {utterance.id: utterance.speaker for utterance in private}
    sex_of = {utterance.speaker: utterance.sex for utterance in private}
    lists = read_trials(context.inputs["private"] / "trials", speaker_of)
    state = context.system.state
    check_attackers(attackers, state, private.speakers, str(where))
    ranks = draw_rank_protocol(
        lists.enrolments, speaker_of, context.params.score.rank_inputs, context.params.base.seed
    )
    plan = Plan(lists, ranks)
    items = list(dict.fromkeys([*plan.enrolled, *plan.tested]))
    released.require(items)
    read = released.audio
    semi_informed = Scenario(
        "semi_informed", attackers, state, state, state, read, read, plan, Fusion.load(where)
    )
    scenarios = [semi_informed]
    if state != "original":
        first = context.inputs["original_attacker"]
        others = find_attackers(first)
        check_attackers(others, "original", private.speakers, str(first))
        missing = [kind for kind in attackers if kind not in others]
        if missing:
            raise InputError(
                f"{first}: has no attacker {missing[0]}, but {where} has; it holds {', '.join(others)};"
                " run train_attacker of the original system again"
            )
        fusion = Fusion.load(first)
        scenarios += [
            Scenario("ignorant", others, "original", "original", state, private.audio, read, plan, fusion),
            Scenario("lazy_informed", others, "original", state, state, read, read, plan, fusion),
        ]
    short = sum(released[item].samples < MINIMUM_SAMPLES for item in items)
    public = transcripts_of(Split(context.inputs["public"] / "attacker"))
    words = score_transcripts(transcripts_of(private), public, plan)
    own = _own(context, scenarios, transcripts=words is not None)
    if words is None:
        print("score: no row 'the words alone', which needs transcripts of all trials and of public speech")
    elif semi_informed in own:
        write_words_alone(scores, words, plan, speaker_of, sex_of)
    for scored in run_scenarios(own, lambda what, total: context.progress(what, total).update):
        folder = scores / scored.conditions.attacker / scored.conditions.scenario
        write_attack(folder, scored, lists, speaker_of, short_clips=short, sex_of=sex_of)


def _own(context: StageContext, scenarios: Sequence[Scenario], *, transcripts: bool) -> list[Scenario]:
    """Return the scenarios of this share; the last two embed the same speech, so they share a pod longest."""
    share, names = context.share, [scenario.name for scenario in scenarios]
    if share.count > len(scenarios):
        raise ParamsError(
            f"cluster.score_shards: got {share.count}, but system {context.key} is attacked in"
            f" {len(scenarios)} scenarios ({', '.join(names)}), so it must be at most {len(scenarios)}"
        )
    chosen = [
        scenario
        for position, scenario in enumerate(scenarios)
        if min(position, share.count - 1) == share.number - 1
    ]
    held = {scenario.name for scenario in chosen}
    if transcripts:
        # The attack on transcripts goes with the first scenario.
        held |= {TRANSCRIPTS} if names[0] in held else set()
        names = [*names, TRANSCRIPTS]
    context.mark_part("scores", names, held)
    return chosen
