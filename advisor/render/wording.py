"""Words of the report in both languages, and how subjects, savings and remedies are said."""

from __future__ import annotations

import logging
from functools import cache

from advisor.basics.symbols import plain_symbol
from advisor.basics.units import EXACT, rank_list, show
from advisor.knowledge.fact_titles import fact_title, fact_titles
from advisor.knowledge.words import both, word, words
from advisor.model import LANGUAGES, Finding, Remedy, Report, Saving, Subject, Text, Value

__all__ = [
    "about_recording", "amount", "aside", "both", "breakdown", "brief_gain", "change", "check", "extent", "gain",
    "hangs_on_absent", "labelled", "made_of", "meaning", "promise", "title_of", "where", "word", "words",
]  # fmt: skip

log = logging.getLogger("advisor")

UPPER_BOUND = "upper_bound"
"""The kind of a saving that is no promise: no more than this, perhaps much less."""
SMALLEST_REST = 0.005
"""Shares are rounded: less than this is no missing part of a step."""


def where(subject: Subject, lang: str) -> str:
    """The subject as people say it: "rank 3", "link 1-2", with its ranks where they tell more; of a C++ function its
    own name (`full_name` has the rest)."""
    subject = subject.as_said
    kind = word(lang, f"kinds.{subject.kind}")
    if subject.kind == subject.id:
        return kind
    if subject.kind == "rank" and len(subject.ranks) > 1:
        return f"{word(lang, 'report.ranks')} {rank_list(subject.ranks)}"
    ranks = ""
    if subject.ranks and subject.kind != "rank" and (subject.kind != "link" or len(subject.ranks) > 2):
        kind_of_rank = word(lang, "kinds.rank" if len(subject.ranks) == 1 else "report.ranks")
        ranks = aside(f"{kind_of_rank} {rank_list(subject.ranks)}", lang)
    return f"{kind} {plain_symbol(subject.id)}{ranks}"


def full_name(subject: Subject) -> str:
    """The name the profile has for the subject where `where` says less of it, else nothing."""
    return subject.id if plain_symbol(subject.id) != subject.id else ""


def aside(text: str, lang: str) -> str:
    """ " (rank 3)" to stand behind a word; empty where there is nothing to add."""
    return word(lang, "report.aside", text=text) if text else ""


def labelled(label: str, text: object, lang: str) -> str:
    """ "Check: idle time falls"."""
    return word(lang, "report.labelled", label=label, text=text)


def breakdown(report: Report) -> list[tuple[str, float]]:
    """(phase, share) of the step, largest parts as given; what no phase accounts for is said as "unknown", or as
    computing and idle time where the files do not tell these apart."""
    shares = report.summary.breakdown or report.summary.host_breakdown
    parts = [(name, share) for name, share in shares.items() if share > 0]
    rest = 1 - sum(share for _, share in parts)
    together = any(fact.name == "step.computing_includes_idle" and fact.value for fact in report.facts)
    return [*parts, ("undivided" if together else "unknown", rest)] if parts and rest > SMALLEST_REST else parts


def extent(report: Report, lang: str) -> list[str]:
    """How much was read: "8/16 ranks", "2 steps"; one rank or step by its name."""
    profile = report.profile
    told = []
    if len(profile.ranks) == 1:
        told.append(f"{word(lang, 'kinds.rank')} {profile.ranks[0]}")
    elif profile.ranks:
        world = f"/{profile.world_size}" if profile.world_size and profile.world_size > len(profile.ranks) else ""
        told.append(f"{len(profile.ranks)}{world} {word(lang, 'report.ranks')}")
    if len(profile.steps) == 1:
        told.append(f"{word(lang, 'kinds.step')} {profile.steps[0]}")
    elif profile.steps:
        told.append(f"{len(profile.steps)} {word(lang, 'report.steps')}")
    return told


def made_of(report: Report, lang: str) -> str:
    """What the step of the summary sums up: "mean of 3 steps, median of 4 ranks"; empty where it is one of one."""
    steps = len(report.profile.steps)
    ranks = len(report.profile.ranks)
    parts = [word(lang, "figures.of_steps", count=steps)] if steps > 1 else []
    parts += [word(lang, "figures.of_ranks", count=ranks)] if ranks > 1 else []
    return word(lang, "conditions.and").join(parts) if report.summary.step_time_us is not None else ""


def about_recording(report: Report, lang: str) -> str:
    """What was recorded, and why it is taken for that; empty for training steps with nothing more to say."""
    profile = report.profile
    if profile.recording == "training_steps" and profile.has_steps:
        return ""
    kind = word(lang, f"recording_kinds.{profile.recording}")
    return word(lang, "report.about_recording", kind=kind, reason=profile.recording_reason)


def gain(saving: Saving | None, lang: str) -> str:
    """ "12 ms (10 ms to 14 ms; 38 % of the step)", or that it is not known."""
    if saving is None:
        return word(lang, "report.gain_unknown")
    if saving.us <= 0:
        later = show(saving.after_others_us or 0.0, "us")
        return word(lang, "report.nothing_alone" if saving.after_others_us else "report.nothing", amount=later)
    told = [word(lang, "report.up_to", amount=amount(saving)) if saving.kind == UPPER_BOUND else amount(saving)]
    if saving.lone_step:
        told = [word(lang, "report.in_one_step", amount=told[0], step=saving.lone_step, count=saving.of_steps)]
    if saving.range_us is not None and saving.kind != UPPER_BOUND and not saving.lone_step:  # which tells how often
        low, high = (show(us, "us") for us in saving.range_us)
        told.append(word(lang, "report.between", low=low, high=high))
    if saving.share is not None and not saving.lone_step:
        whole = "report.share_of_step" if saving.us_of_recording is None else "report.share_of_recording"
        told.append(word(lang, whole, share=show(saving.share, "ratio")))
    if saving.without_absent_us is not None:
        told += _only_if_absent(saving, lang)
    elif saving.after_others_us is not None and abs(saving.after_others_us - saving.us) > TELLING * saving.us:
        told.append(word(lang, "report.after_others", amount=show(saving.after_others_us * saving.of_steps, "us")))
    if len(told) == 1:
        return told[0]
    return word(lang, "report.gain", amount=told[0], more=word(lang, "report.semicolon").join(told[1:]))


def _only_if_absent(saving: Saving, lang: str) -> list[str]:
    """How much of it hangs on ranks without a profile: what the account of the step and its replay do not count."""
    sure_us = saving.without_absent_us
    if sure_us is None or sure_us >= saving.us:
        return []
    return [word(lang, f"report.{'more_' if sure_us else ''}only_if_absent", amount=show(sure_us, "us"))]


def hangs_on_absent(saving: Saving, lang: str) -> str:
    """ "up to 14 ms; more than 3 ms only if …"; empty where nothing of it hangs on ranks without a profile."""
    told = _only_if_absent(saving, lang)
    whole = word(lang, "report.up_to", amount=amount(saving))
    return word(lang, "report.semicolon").join([whole, *told]) if told else ""


def brief_gain(saving: Saving, sign: str = "") -> Text:
    """ "12 ms (38 %)" for a list, with the digits of `gain`, an upper bound said as one; what `gain` says where it is
    nothing. What another cause hides most of is told as well, or its severity seems out of place. `sign` stands before
    the time."""
    if saving.us <= 0:
        return Text(*(gain(saving, lang) for lang in LANGUAGES))
    us = f"{sign}{amount(saving)}"
    told: str | Text = us
    if saving.share is not None and not saving.lone_step:
        told = Text(*(word(lang, "report.gain", amount=us, more=_more(saving, lang)) for lang in LANGUAGES))
    if saving.kind == UPPER_BOUND:
        return both("report.up_to", amount=told)
    return told if isinstance(told, Text) else Text(told, told)


def _more(saving: Saving, lang: str) -> str:
    """Its share of the step, what of it hangs on ranks without a profile, and what it gives behind the findings above
    where that is more than twice as much, or less and nothing else tells it."""
    told, after_us = [show(saving.share or 0.0, "ratio")], saving.after_others_us or 0.0
    told += _only_if_absent(saving, lang)
    # of a step, the line on repairing one after another tells what is promised twice
    twice = saving.us_of_recording is not None and saving.after_others_us is not None
    less = twice and saving.us - after_us > TELLING * saving.us
    if (after_us - saving.us > saving.us or less) and saving.without_absent_us is None:
        told.append(word(lang, "report.after_others", amount=show(after_us, "us")))
    return word(lang, "report.semicolon").join(told)


def amount(saving: Saving) -> str:
    """Its time in people's units."""
    return show(saving.once_us, "us")


TELLING = 0.1
"""Part of a saving that must be gone, or come on top, after the findings above before that is worth saying."""


def promise(finding: Finding, lang: str) -> str:
    """What stands before `gain`: it could be saved, or is lost and nobody knows yet from what."""
    return word(lang, "report.could_give" if finding.saving is not None else "report.at_stake")


def check(remedy: Remedy, lang: str) -> str:
    """How to see that the remedy worked; empty where it says nothing."""
    if remedy.verify is None:
        return ""
    title, expect = fact_title(remedy.verify.fact, lang), remedy.verify.expect
    title = f"{title}," if ", " in title else title  # "lateness, share of the step, should fall"
    if expect.startswith("= "):
        return word(lang, "report.verify_is", fact=title, value=_said(expect.removeprefix("= "), lang))
    return word(lang, "report.verify_with", fact=title, expect=word(lang, f"expectations.{expect.removesuffix('s')}"))


def _said(value: str, lang: str) -> str:
    known = {"true": "yes", "false": "no"}.get(value)
    return value if known is None else word(lang, f"conditions.{known}")


def change(remedy: Remedy) -> str:
    """ "6 → 12" for the parameter a remedy proposes to change; empty where it proposes no value."""
    if remedy.proposed is None:
        return ""
    current = f"{_typed(remedy.current)} → " if remedy.current is not None else ""
    name = f"{remedy.parameter}: " if remedy.parameter else ""
    return f"{name}{current}{_typed(remedy.proposed)}"


def _typed(value: Value) -> str:
    """A value as it is typed into a program: True, 12, 85, 160."""
    return str(value) if isinstance(value, bool) else show(value, "number", EXACT)


@cache
def _meanings() -> dict[str, str]:
    """Empty where a family cannot be loaded: a saved report is worth showing without its explanations."""
    from advisor.facts.registry import catalogue

    try:
        return {name: kind.meaning for name, kind in catalogue().items()}
    except Exception:
        log.debug("no catalogue of facts", exc_info=True)
        return {}


def meaning(fact: str) -> str:
    """What the catalogue says about a fact; empty where it does not know it (saved reports, plugins)."""
    return _meanings().get(fact, "")


def title_of(fact: str) -> Text:
    """What people call a fact; without a title what the catalogue says, or its id."""
    known = fact_titles().get(fact)
    return known if known is not None else Text(meaning(fact) or fact, fact)
