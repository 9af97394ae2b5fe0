"""Where the lost time goes, and whether the evidence suffices to call a profile without findings healthy
(knowledge_base/all_clear.yaml).

Less evidence never looks better: healthy is a claim about all three directions and about all ranks that took part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from advisor.basics.units import MEASURED, rank_list, show
from advisor.engine.concluding.doubted import failed_measures
from advisor.facts.account.spending import step_time
from advisor.facts.base import FactSet
from advisor.knowledge.statements import document
from advisor.knowledge.words import both
from advisor.knowledge.writers import called_later, called_there
from advisor.model import COLLECTION, RUN, Finding, Subject, Text
from advisor.tables import FILES


class Doubt(Struct, frozen=True):
    """Why a profile cannot be called healthy, and the evidence that would tell."""

    why: Text
    tells: Text | None
    suspect: Finding | None = None
    """What may weigh much, where the evidence for it is weak."""
    wanted: tuple[str, ...] = ()
    """The files of that evidence, by today's names."""


MOST_FILES = 3
"""Files named in one sentence."""


def some(files: Sequence[str]) -> str:
    """The first files by name."""
    return ", ".join(files[:MOST_FILES]) + (" …" if len(files) > MOST_FILES else "")


class Loss(Struct, frozen=True):
    """Time of a step in which no computation ran, as a share of it."""

    direction: str
    share: float
    name: Text
    verdicts: tuple[str, ...]
    """Of the findings that show it, as somebody's symptom or unexplained."""
    tells: Text | None = None
    """The evidence that would show its cause, where it was not collected."""
    mostly: Text | None = None
    """What takes most of it, where that has one name."""
    elsewhere: float = 0.0
    """The part of the share whose reason lies in another direction."""
    wanted: tuple[str, ...] = ()
    """The files of the evidence that would show its cause."""


def losses(facts: FactSet) -> list[Loss]:
    """Lost time by direction, the one with most of its own first; a direction of which nothing was measured is not
    among them."""
    found = []
    for direction, entry in terms()["lost"].items():
        known = [item for name in entry["facts"] if (item := facts.get(name, RUN)) is not None and not item.doubted]
        shares = [share for item in known if (share := facts.number(item.name, RUN)) is not None]
        # waiting for other stages is lost as well, but for what the schedule needs of it
        staged = direction == "communication" and (_bubble_is_unknown(facts) or _bubble_is_told(facts))
        if staged:
            exposed = facts.number("step.exposed_communication_share", RUN) or 0.0
            shares = [beyond] if shares and (beyond := exposed - _largest_bubble(facts)) > 0 else []
        if direction == "scheduling" and (_is_handful(facts) or facts.value("recording.is_set_up", RUN) is True):
            continue
        awaiting = _awaiting(facts) if direction == "scheduling" else 0.0
        shares = [share - awaiting for share in shares[:1] if share > awaiting]
        if shares:
            told = any(facts.value(name, RUN) is not None for name in entry["tells"]["unless"])
            tells = None if told else _not_at_hand(entry["tells"]["evidence"], facts)
            beyond = staged or _is_without_bubble(known[0].name, facts)
            lost = f"{direction}_beyond_bubble" if beyond else direction
            found.append(
                Loss(
                    direction,
                    shares[0],
                    both(f"lost.{lost}"),
                    tuple(entry["verdicts"]),
                    tells,
                    _mostly(entry, shares[0], facts),
                    facts.number(entry.get("elsewhere", ""), RUN) or 0.0,
                    () if told else _lacking(entry["tells"]["evidence"], facts),
                )
            )
    return sorted(found, key=lambda loss: loss.elsewhere - loss.share)


def _awaiting(facts: FactSet) -> float:
    """The share of the time in which a server may have waited for requests: nobody knows whether it is lost."""
    return facts.number("timeline.awaiting_idle_share", RUN) or 0.0


def _mostly(entry: Mapping[str, Any], share: float, facts: FactSet) -> Text | None:
    if (most := entry.get("mostly")) is None or (step := step_time(facts)) is None:
        return None
    us = facts.number(most["us"], RUN)
    if us is None or us < most["value"] * share * step:
        return None
    return both("summary.mostly", kind=str(facts.value(most["kind"], RUN)), time=show(us, "us", MEASURED))


def _is_without_bubble(name: str, facts: FactSet) -> bool:
    """Whether a share of exposed communication leaves out a bubble that the picture of the step contains. Without
    stages there is none, however the two shares were rounded."""
    received = (facts.number("step.bubble_us", RUN) or 0) > 0 and facts.value("parallelism.ring", RUN) is not True
    staged = (facts.number("parallelism.pipeline", RUN) or 1) > 1 or received
    whole = facts.number("step.exposed_communication_share", RUN)
    part = facts.number(name, RUN)
    told = name == "communication.exposed_without_bubble_share" and whole is not None and part is not None
    return told and staged and part < whole  # type: ignore[operator]


def _bubble_is_unknown(facts: FactSet) -> bool:
    """Whether exposed communication may be a pipeline's unavoidable bubble, of which nothing is told."""
    untold = facts.value("pipeline.bubble_share", RUN) is None or _stages_are_guessed(facts)
    return (facts.number("parallelism.pipeline", RUN) or 1) > 1 and untold


def _stages_are_guessed(facts: FactSet) -> bool:
    """Whether nothing tells how many stages there are: those at hand may be the ends of a longer pipeline."""
    absent = (facts.number("run.missing_ranks", RUN) or 0) > 0
    return absent and facts.value("parallelism.is_told", RUN) is False


def _bubble_is_told(facts: FactSet) -> bool:
    """Whether stages, and who is one, are told, and how long they wait for each other at least."""
    needed = facts.value("pipeline.bubble_minimum_share", RUN)
    return needed is not None and facts.value("parallelism.is_told", RUN) is not False


def _largest_bubble(facts: FactSet) -> float:
    """The bubble that the schedule makes unavoidable, share of the step, as the stage at hand tells; else the largest
    that any can: (p − 1) ÷ (m + p − 1), with one micro-batch for p stages where nothing tells more (diagnosis,
    pipelines). Behind the ranks at hand there may be more stages than these name: their order of forward and backward
    tells, or as many as ranks where nothing does."""
    told = facts.number("pipeline.bubble_minimum_share", RUN)
    if told is not None and not _stages_are_guessed(facts):
        return told
    names = "parallelism.pipeline", "pipeline.micro_batches", "pipeline.stages_in_order"
    at_hand, micro, in_order = (facts.number(name, RUN) or 1 for name in names)
    world = facts.number("run.world_size", RUN) or 1
    stages = max(at_hand, in_order, world if _stages_are_guessed(facts) else 1)
    return (stages - 1) / (micro + stages - 1)


def _is_handful(facts: FactSet) -> bool:
    """Whether so few kernels are at hand, without steps, that what lies between them is a script's and no program's;
    where the step table knows of no others, it tells what the device did meanwhile."""
    kernels = facts.number("recording.kernels", RUN)
    few = kernels is not None and kernels < terms()["handful"]["value"]
    unframed = facts.value("recording.is_complete", RUN) is not True
    return few and unframed and facts.value("recording.has_steps", RUN) is False


def leading_loss(facts: FactSet) -> Loss | None:
    """The largest loss that has a direction of its own."""
    return next((loss for loss in losses(facts) if loss.share >= terms()["named"]["value"]), None)


def objection(facts: FactSet, findings: Sequence[Finding] = (), ranks: Sequence[int] = ()) -> Doubt | None:
    """Why this profile cannot be called healthy although no finding has weight; None where it can."""
    if files := facts.doubted:
        shown = some(files)
        return Doubt(both("all_clear.contradicted", files=shown), both("all_clear.contradicted_tells", files=shown))
    if failed := failed_measures(facts):
        return Doubt(both("all_clear.failed", names=some(failed)), both("all_clear.failed_tells"))
    if (share := facts.number("step.unplaced_share", RUN) or 0.0) >= terms()["doubted"]["value"]:
        return Doubt(both("all_clear.unplaced", share=show(share, "ratio")), both("all_clear.unplaced_tells"))
    if facts.value("recording.is_set_up", RUN) is True:
        return Doubt(both("all_clear.set_up"), both("all_clear.set_up_tells"))
    told = [(f, (f.saving or f.at_stake)) for f in findings]
    doubted = [(f, share) for f, s in told if s and (share := s.share or 0.0) >= terms()["doubted"]["value"]]
    if doubted:
        first, share = doubted[0]
        return Doubt(both("all_clear.doubted", share=show(share, "ratio"), title=first.title), None, first)
    if (share := _awaiting(facts)) >= terms()["named"]["value"]:
        return Doubt(both("all_clear.awaiting", share=show(share, "ratio")), both("all_clear.awaiting_tells"))
    if _ran_once(facts):
        return Doubt(both("all_clear.once"), both("all_clear.set_up_tells"))
    return (
        _absent_ranks(facts, ranks)
        or _left_out(facts)
        or _uneven_files(facts)
        or _few_or_uneven_steps(facts)
        or _single_witness(facts)
        or _unmeasured(facts, ranks)
    )


def _ran_once(facts: FactSet) -> bool:
    """Whether kernels ran that no step marks, and what came again is the smaller part: what was recorded once may be
    anything. A benchmark launches one kernel, and is judged by it."""
    if facts.value("recording.has_steps", RUN) is not False or facts.has("recording.repeats"):
        return False
    return facts.value("recording.kind", RUN) == "unmarked" and facts.has("recording.kernels")


def _absent_ranks(facts: FactSet, ranks: Sequence[int]) -> Doubt | None:
    world, missing = facts.number("run.world_size", RUN) or 1, facts.number("run.missing_ranks", RUN) or 0
    if missing > 0:
        here = facts.number("run.rank_count", RUN) or len(ranks)
        stated = (
            facts.value("run.world_is_stated", RUN) is not False
        )  # else groups of some ranks name some of the others
        word = "all_clear.ranks" if stated else "all_clear.ranks_at_least"
        return Doubt(both(word, here=int(here), all=int(world)), both("all_clear.ranks_tell"))
    numbers_have_holes = bool(ranks) and sorted(ranks) != list(range(len(ranks)))
    if world > 1 and (facts.value("run.world_is_told", RUN) is False or numbers_have_holes):
        tells = "world_tells" if _lacking("communication_matrix.json", facts) else "metadata_tells"
        return Doubt(both("all_clear.world"), both(f"all_clear.{tells}"))
    return None


def _left_out(facts: FactSet) -> Doubt | None:
    """Ranks at hand that stand in no mean and no comparison: nobody knows how they did."""
    left_out = facts.value("run.left_out_ranks", RUN)
    if not isinstance(left_out, tuple) or not left_out:
        return None
    names = rank_list(tuple(int(rank) for rank in left_out))
    said = both("summary.ranks" if len(left_out) > 1 else "summary.rank", ranks=names)
    return Doubt(both("all_clear.left_out", ranks=said), both("all_clear.left_out_tells"))


def _uneven_files(facts: FactSet) -> Doubt | None:
    """Files that some ranks lack beside the others: what is wrong with these may stand in them."""
    files = facts.value("run.uneven_files", RUN)
    if not isinstance(files, tuple) or not files:
        return None
    told = some([str(file) for file in files])
    return Doubt(both("all_clear.uneven_files", files=told), both("all_clear.uneven_files_tell", files=told))


def _single_witness(facts: FactSet) -> Doubt | None:
    """Kernels that no other table counts or times: rows may be missing, and nothing would tell."""
    tables = facts.value("collection.tables", COLLECTION)
    if not isinstance(tables, tuple) or "kernels" not in tables or set(tables) & set(terms()["count_kernels"]):
        return None
    return Doubt(both("all_clear.one_table"), both("all_clear.one_table_tells"))


def _few_or_uneven_steps(facts: FactSet) -> Doubt | None:
    marked = facts.number("step.marked_count", RUN)
    steps, limit = facts.number("step.count", RUN) if marked is None else marked, terms()["uneven"]
    if steps is not None and steps < terms()["steps"]["value"]:
        return Doubt(both("all_clear.few_steps", count=int(steps)), both("all_clear.steps_tell"))
    if partial := facts.number("run.partial_steps", RUN):
        return Doubt(both("all_clear.partial_steps", count=int(partial)), both("all_clear.partial_steps_tell"))
    recorded, asked = (facts.number(f"collection.steps_{what}", COLLECTION) for what in ("recorded", "expected"))
    if recorded is not None and asked is not None and recorded < min(asked, limit["few"]["value"]):
        lacking = {"count": int(recorded), "all": int(asked)}
        return Doubt(both("all_clear.absent_steps", **lacking), both("all_clear.partial_steps_tell"))
    longest, shortest = facts.number("step.longest_us", RUN), facts.number("step.shortest_us", RUN)
    if steps is None or steps >= limit["few"]["value"] or not longest or not shortest:
        return None
    alike = facts.number("utilisation.steps_ratio", RUN) or longest / shortest  # steps may differ by their input alone
    if min(alike, longest / shortest) < limit["value"]:
        return None
    lengths = {"shortest": show(shortest, "us"), "longest": show(longest, "us"), "count": int(steps)}
    return Doubt(both("all_clear.uneven_steps", **lengths), both("all_clear.more_steps_tell"))


def _unmeasured(facts: FactSet, ranks: Sequence[int]) -> Doubt | None:
    lost = {loss.direction: loss.share for loss in losses(facts)}
    device = any(facts.value(name, RUN) is not None for name in terms()["device"])
    state = {
        "always": True,
        "together": (facts.number("run.world_size", RUN) or 1) > 1,
        "device": device,
        "host": not device,
    }
    lost["tail"] = facts.number("step.tail_share", RUN) or 0.0
    least = {direction: entry["accounted"]["value"] for direction, entry in terms()["lost"].items()}
    least["tail"] = terms()["tail"]["value"]
    if _bubble_is_unknown(facts):
        lost["bubble"] = facts.number("step.exposed_communication_share", RUN) or 0.0
        least["bubble"] = least["communication"]
    whole = facts.number("step.exposed_communication_share", RUN) or 0.0
    rest = facts.number("communication.exposed_without_bubble_share", RUN)
    lost["pipelined"] = whole - (whole if rest is None else rest)
    if rest is not None and "communication" in lost and not _bubble_is_unknown(facts):
        lost["communication"] = min(lost["communication"], rest)  # of stages that wait for others, "pipelined" tells
    least["pipelined"] = least["communication"]
    lost["transfer"] = facts.number("communication.exposed_transfer_share", RUN) or 0.0
    least["transfer"] = least["communication"]
    for direction, share in lost.items():
        state[direction] = share >= least[direction]
    for entry in terms()["needed"]:
        if state.get(entry["where"], False) and not _measured(facts, entry, ranks):
            part = show(lost.get(entry["where"], 0.0), "ratio")
            why, tells = both(f"lacks.{entry['lacks']}", share=part), entry["tells"]
            return Doubt(why, _not_at_hand(tells, facts), wanted=_lacking(tells, facts))
    return None


def _not_at_hand(evidence: str, facts: FactSet) -> Text | None:
    """What to collect of the files named: nobody is asked for what every rank has, or for what his profiler never
    writes; where a later version of it does, that is said."""
    writer = str(facts.value("run.layout", RUN) or ""), str(facts.value("run.framework", RUN) or "")
    lacking = _lacking(evidence, facts)
    told = " / ".join(filter(None, dict.fromkeys(called_there(file, *writer) for file in lacking)))
    if told or not lacking:
        return Text(told, told) if told else None
    later = next(filter(None, (called_later(file, *writer) for file in lacking)), None)
    return both("summary.later", file=later[0], version=later[1]) if later else None


def _lacking(evidence: str, facts: FactSet) -> tuple[str, ...]:
    """Those of the files named that no rank has."""
    tables = facts.value("collection.tables", COLLECTION)
    at_hand = {FILES.get(str(table), "") for table in tables} if isinstance(tables, tuple) else set()
    return tuple(file for file in evidence.split(" / ") if file not in at_hand)


def _measured(facts: FactSet, entry: Mapping[str, Any], ranks: Sequence[int]) -> bool:
    names = entry["any"]
    if entry["of"] == "any":
        return any(facts.has(name) for name in names)
    subjects = [Subject("rank", str(rank), (rank,)) for rank in ranks] if entry["of"] == "rank" and ranks else [RUN]
    return all(any(facts.value(name, subject) is not None for name in names) for subject in subjects)


@lru_cache(maxsize=1)
def terms() -> dict[str, Any]:
    """The document's limits and words."""
    return dict(document("all_clear.yaml"))
