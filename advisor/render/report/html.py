"""One HTML file: no network, both languages inside, readable without JavaScript, inert whatever the names are.

Structure in `reports/templates/report.html`, looks in `style.css`, behaviour in `script.js`; here only what they need.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from advisor.basics.resources import resource
from advisor.basics.units import rank_list, show
from advisor.exchange import tool_version
from advisor.model import LANGUAGES, Finding, Outcome, Report, Text
from advisor.render import wording
from advisor.render.escaping import printable, shorten
from advisor.render.report.figures import figures
from advisor.render.report.outline import Branch, branches, checks, next_collection

CARDS = 120
"""Causes told in full; further ones are lines of a table, which keeps a report of a thousand ranks openable."""
_LIBRARIES = ("chart.js", "chartjs-chart-matrix.js", "chartjs-chart-treemap.js")
_KNOWN_PHASES = (
    "computing", "exposed_communication", "communication", "overlapped", "idle", "bubble", "preparing", "interval",
    "fp_bp", "tail", "data_wait", "own", "unknown",
)  # fmt: skip


def render_html(report: Report, lang: str = "en", **_: Any) -> str:
    """The report as one HTML document; `lang` is the language it opens in."""
    trees = branches(report)
    pictures = figures(report)
    return render_page(
        "report.html",
        lang,
        {picture.id: picture.spec for picture in pictures if picture.spec},
        report=report,
        trees=trees,
        cards=CARDS,
        figures=pictures,
        breakdown=_breakdown(report),
        direction_class=_direction_class(report),
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


def render_page(
    template: str, lang: str, specs: Mapping[str, Any], *, styles: tuple[str, ...] = ("style.css",),
    lines: bool = True, **values: Any,
) -> str:  # fmt: skip
    """A template of `reports/templates` with these styles, the script and the pictures' data in it, and a policy that
    allows nothing else. Texts of profiles keep their line breaks unless `lines` is false."""
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
            figures_data=_data(specs),
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
        anchor=_anchor,
        both=wording.both,
        change=wording.change,
        chains=chains,
        check=wording.check,
        expected=wording.expected,
        meaning=wording.meaning,
        measured=wording.measured,
        show=show,
        amount=wording.amount,
        telling=wording.telling,
        two=_two,
        where=wording.where,
        word=wording.word,
    )
    return environment


def _finalize(value: Any, *, lines: bool) -> Any:
    """Every text of a profile loses control characters and direction overrides; our own markup stays."""
    return printable(value, lines=lines) if isinstance(value, str) and not isinstance(value, Markup) else value


def _two(say: Callable[[Any, str], str], value: Any) -> Text:
    return Text(*(say(value, lang) for lang in LANGUAGES))


def _anchor(identity: str) -> str:
    """The id of a finding as an id of the page; anything unusual is hashed."""
    if identity.isascii() and identity.isalnum():
        return f"finding-{identity}"
    return "finding-x" + hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:12]


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


def _collect(report: Report, lang: str) -> str:
    """How many rules wait for evidence and the one collection that would bring most of it; empty where none wait."""
    collection = next_collection(report)
    waiting = len({rule for item in report.missing_evidence for rule in item.rules})
    if collection is None:
        return ""
    return wording.word(lang, "report.not_judged_line", count=waiting, setting=collection.get(lang))


def _direction_class(report: Report) -> str:
    if report.summary.direction in ("healthy", "undetermined"):
        return "healthy" if report.summary.direction == "healthy" else "medium"
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
    folder = resource("reports", "templates")
    licence = (folder / "vendor" / "LICENSE.txt").read_text(encoding="utf-8").replace("*/", "* /")
    libraries = [(folder / "vendor" / name).read_text(encoding="utf-8") for name in _LIBRARIES]
    own = (folder / "script.js").read_text(encoding="utf-8")
    return "\n".join([f"/*! {licence} */", *libraries, own])


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _data(specs: Mapping[str, Any]) -> Markup:
    """JSON that can stand in a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(dict(specs), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
