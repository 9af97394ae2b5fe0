"""One HTML file: no network, both languages inside, readable without JavaScript, inert whatever the names are.

Structure in `reports/templates/report.html`, looks in `style.css`, behaviour in `script.js`; here only what they need.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from advisor.basics.resources import resource
from advisor.basics.units import MEASURED, rank_list, show, show_apart, signed
from advisor.exchange import tool_version
from advisor.knowledge.messages import in_both
from advisor.knowledge.statements import cited, documents, statements
from advisor.model import LANGUAGES, Evidence, Finding, Outcome, Report, Text
from advisor.render import conditions, wording
from advisor.render.escaping import printable, shorten
from advisor.render.report.figure import Figure
from advisor.render.report.figures import figures, own_pictures, spread
from advisor.render.report.groups import group_lines
from advisor.render.report.outline import (
    Branch,
    branches,
    checks,
    direction_words,
    has_gaps,
    in_full,
    next_collection,
    problems_together,
    said_counts,
)  # fmt: skip
from advisor.render.report.pictures.svg import anchor_of
from advisor.render.report.places import place_of
from advisor.render.report.whatif import spent, step_without, used

CARDS = 120
"""Causes told in full; further ones are lines of a table, which keeps a report of a thousand ranks openable."""
WHATIFS = 4096
"""Choices of causes told in the page."""
ILLUSTRATED = 5
"""Causes that stand with a picture of their own."""
_KNOWN_PHASES = (
    "computing", "exposed_communication", "communication", "overlapped", "idle", "bubble", "preparing", "interval",
    "fp_bp", "tail", "data_wait", "own", "unknown", "undivided",
)  # fmt: skip


def render_html(report: Report, lang: str = "en", **_: Any) -> str:
    """The report as one HTML document; `lang` is the language it opens in."""
    trees = branches(report)
    pictures = figures(report)
    own = own_pictures(pictures, [branch.finding for branch in trees[:ILLUSTRATED]])
    with_findings = {picture.id for picture in own.values()}
    return render_page(
        "report.html",
        lang,
        report=report,
        trees=trees,
        first_to_do=next((b for b in in_full(report, trees) if b.finding.remedies), None),
        cards=CARDS,
        own=own,
        figures=spread([picture for picture in pictures if picture.id not in with_findings]),
        contents=pictures,
        seen_in=_seen_in(pictures, own),
        aggregated=_two(wording.made_of, report),
        counts=_two(said_counts, report),
        breakdown=_breakdown(report),
        unlike=list(map(Text, *(group_lines(report, lang) for lang in LANGUAGES))),
        spent=_two(_spent, report),
        used=_two(used, report),
        direction_class=_direction_class(report),
        direction=direction_words(report),
        whatif=_whatif(report),
        gaps=report.summary.direction == "healthy" and has_gaps(report),
        problems=problems_together(report),
        extent=_extent(report),
        recorded=_two(wording.about_recording, report),
        passed=checks(report, Outcome.PASS),
        unjudged=checks(report, Outcome.NO_DATA),
        inapplicable=checks(report, Outcome.NOT_APPLICABLE),
        failed_rules=checks(report, Outcome.ERROR),
        missing=sorted(report.missing_evidence, key=lambda item: -len(item.rules)),
        collect=_two(_collect, report),
        facts_about=_facts_about(report),
    )


def _whatif(report: Report) -> dict[str, Any] | None:
    """The causes to tick, and the step without each choice of them as a part of the step; None where none is told."""
    told = report.whatif
    by_id = {finding.id: finding for finding in report.findings}
    if told is None or not told.causes or not (told.step_time_us.get("") or 0) > 0:
        return None
    whole = told.step_time_us[""]
    rows = [
        (
            key,
            Text(*(step_without(report, key.split(","), us, lang) for lang in LANGUAGES)),
            round(min(us / whole, 1.0), 4),
        )
        for key, us in told.step_time_us.items()
    ]
    return {"causes": [by_id[cause] for cause in told.causes if cause in by_id], "rows": rows[:WHATIFS]}


def _statements_of(finding: Finding) -> list[tuple[str, Text]]:
    """The cited statements of the tuning guides with their text, where they are known."""
    try:
        known = statements()
    except (OSError, ValueError, KeyError):
        return []  # a report is worth showing without them
    return [(identity, known[identity].text) for identity in finding.statements if identity in known]


def _place_of(report: Report, finding: Finding) -> Text | None:
    """Where to look in a timeline, in words."""
    place = place_of(report, finding)
    if place is None:
        return None
    start, end = show_apart(place.start_us, place.end_us, "us", MEASURED)
    return wording.both("figures.place", rank=place.rank, step=printable(place.step), start=start, end=end)


def _address_of(reference: Mapping[str, str]) -> str:
    """Where the document can be read, for those of the knowledge base that are public; no address of a profile."""
    try:
        known = documents().get(str(reference.get("document", "")), {})
    except (OSError, ValueError):
        return ""
    address = str(known.get("url", ""))
    return address if address.startswith("https://") else ""


def _seen_in(pictures: Sequence[Figure], own: Mapping[str, Figure]) -> dict[str, list[Figure]]:
    """finding -> the pictures elsewhere on the page that show it."""
    found: dict[str, list[Figure]] = defaultdict(list)
    for picture in pictures:
        for finding in picture.findings:
            if finding not in own or own[finding].id != picture.id:
                found[finding].append(picture)
    return found


def render_page(
    template: str, lang: str, *, styles: tuple[str, ...] = ("style.css",), lines: bool = True, **values: Any
) -> str:
    """A template of `reports/templates` with these styles and the script in it, and a policy that allows nothing else.
    Texts of profiles keep their line breaks unless `lines` is false."""
    style, script = _style(styles), _script()
    return (
        _environment(lines)
        .get_template(template)
        .render(
            lang=lang if lang in LANGUAGES else "en",
            style=Markup(style),
            script=Markup(script),
            style_hash=Markup(_hash(style)),
            script_hash=Markup(_hash(script)),
            version=tool_version(),
            **values,
        )
    )


@cache
def _environment(lines: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(str(resource("reports", "templates"))),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=partial(_finalize, lines=lines),
    )
    environment.filters["truncated"] = lambda text, limit: shorten(printable(text), limit)
    environment.globals.update(
        address_of=_address_of,
        cited=cited,
        place_of=_place_of,
        anchor=anchor_of,
        both=wording.both,
        change=wording.change,
        chains=chains,
        check=wording.check,
        grouped=conditions.grouped,
        value_of=_value_of,
        together=_together,
        show=show,
        standing=_standing,
        amount=wording.amount,
        brief_gain=wording.brief_gain,
        title_of=wording.title_of,
        in_both=in_both,
        signed=signed,
        statements_of=_statements_of,
        two=_two,
        where=wording.where,
        full_name=wording.full_name,
        word=wording.word,
    )
    return environment


def _finalize(value: Any, *, lines: bool) -> Any:
    """Every text of a profile loses control characters and direction overrides; our own markup stays."""
    return printable(value, lines=lines) if isinstance(value, str) and not isinstance(value, Markup) else value


LONGEST = 400
"""Characters of a measured value, of lists that are longer."""


def _together(items: Sequence[Evidence]) -> list[tuple[Evidence, Sequence[Evidence]]]:
    """The evidence with one row a fact: its first subject, and the others; many ranks late alike are one line."""
    rows: dict[str, list[Evidence]] = {}
    for item in items:
        rows.setdefault(item.fact, []).append(item)
    return [(found[0], found[1:]) for found in rows.values()]


def _value_of(item: Evidence, others: Sequence[Evidence]) -> Text:
    """The value; of several subjects from the least to the largest."""
    ends = [item, item]
    if all(isinstance(each.value, (int, float)) for each in (item, *others)):
        ends = [choose((item, *others), key=lambda each: each.value) for choose in (min, max)]
    said = []
    for lang in LANGUAGES:
        low, high = (conditions.measured(end, lang) for end in ends)
        text = low if low == high else wording.word(lang, "report.between", low=low, high=high)
        said.append(shorten(text, LONGEST))
    return Text(*said)


def _standing(item: Evidence, symptom: bool) -> Text:
    return Text(*(conditions.standing(item, lang, symptom=symptom) for lang in LANGUAGES))


def _two(say: Callable[[Any, str], str], value: Any) -> Text:
    return Text(*(say(value, lang) for lang in LANGUAGES))


def chains(branch: Branch) -> list[list[Finding]]:
    """Each way from the farthest symptom to the cause, symptom first."""
    if not branch.symptoms:
        return [[branch.finding]]
    return [[*chain, branch.finding] for below in branch.symptoms for chain in chains(below)]


def _breakdown(report: Report) -> list[dict[str, Any]]:
    parts = wording.breakdown(report)
    total = sum(share for _, share in parts)
    shown, at = [], 0.0
    for name, share in parts:
        width = 1000 * share / total
        css = name if name in _KNOWN_PHASES else "other"
        shown.append({"name": name, "css": css, "share": share, "x": round(at, 1), "width": round(width, 1)})
        at += width
    return shown


def _spent(report: Report, lang: str) -> str:
    """Useful, avoidable and unavoidable parts of the step in a row; empty where it was not accounted for."""
    return " · ".join(spent(report, lang))


def _collect(report: Report, lang: str) -> str:
    """How many rules wait for evidence and the one collection that would bring most of it; empty where none wait."""
    collection = next_collection(report)
    waiting = len({rule for item in report.missing_evidence for rule in item.rules})
    if collection is None:
        return ""
    return wording.word(lang, "report.not_judged_line", count=waiting, setting=collection.get(lang))


def _direction_class(report: Report) -> str:
    if report.summary.direction == "healthy":
        return "partly" if has_gaps(report) else "healthy"
    if report.summary.direction == "undetermined":
        return "medium"
    return (
        max(report.findings, key=lambda finding: finding.severity.rank).severity.value if report.findings else "plain"
    )


def _extent(report: Report) -> list[Text]:
    pairs = zip(*(wording.extent(report, lang) for lang in LANGUAGES), strict=True)
    return [Text(*pair) for pair in pairs]


def _facts_about(report: Report) -> list[tuple[Text | str, str]]:
    profile = report.profile
    parallelism = profile.parallelism
    split = {name: getattr(parallelism, name) for name in ("data", "tensor", "pipeline", "expert")}
    known = ", ".join(f"{name} {size}" for name, size in split.items() if size is not None)
    lines: list[tuple[Text | str, str]] = [
        (wording.both("profile.path"), profile.path),
        (wording.both("profile.framework"), f"{profile.framework}, {profile.layout}"),
        (wording.both("report.ranks"), rank_list(profile.ranks, 20)),
        (wording.both("profile.world_size"), "" if profile.world_size is None else str(profile.world_size)),
        (wording.both("report.steps"), shorten(", ".join(profile.steps), 300)),
        (wording.both("report.excluded"), "; ".join(f"{step}: {why}" for step, why in profile.excluded_steps[:20])),
        (wording.both("profile.parallelism"), f"{known} ({parallelism.source})" if known else ""),
        (wording.both("profile.devices"), ", ".join(profile.devices)),
        *profile.versions.items(),
    ]
    return [(name, value) for name, value in lines if value]


@cache
def _style(names: tuple[str, ...]) -> str:
    return "\n".join(_environment(True).get_template(name).render().strip() for name in names)


@cache
def _script() -> str:
    return (resource("reports", "templates") / "script.js").read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
