"""Checks of a profiler configuration: a script, profiler_config.json, MS_PROFILER_OPTIONS (S49-S53, S84)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.collect.plan import knowledge, limit
from advisor.model import Text

DYNAMIC_NAME = "profiler_config.json"


@dataclass(frozen=True)
class Fault:
    """What is wrong, where, what follows from it, and the statement it offends."""

    level: str
    """error: the collection fails or misleads; warning: it leaves something out"""
    place: str
    message: Text
    hint: Text
    statement: str

    def show(self, lang: str) -> str:
        """One line and a hint."""
        return f"{self.place}: {self.level}: {self.message.get(lang)} ({self.statement})\n  {self.hint.get(lang)}"


def fault(level: str, place: str, en: str, zh: str, hint_en: str, hint_zh: str, statement: str) -> Fault:
    """Short form."""
    return Fault(level, place, Text(en, zh), Text(hint_en, hint_zh), statement)


def check_dynamic(document: Mapping[str, Any], name: str, total: int | None, ranks: int | None) -> Iterator[Fault]:
    """profiler_config.json, which starts a collection while training runs (S51, S53)."""
    if Path(name).name != DYNAMIC_NAME:
        yield fault(
            "error",
            name,
            f"the file must be named {DYNAMIC_NAME}",
            f"文件名必须为{DYNAMIC_NAME}",
            "any other name is not looked at, and a default file is written instead",
            "其他文件名不会被读取，并会另外生成默认配置",
            "S51",
        )
    known = knowledge()["dynamic"]
    for key, value in document.items():
        if key not in known:
            yield fault(
                "warning",
                f"{name}: {key}",
                "unknown key",
                "未知的键",
                "known: " + ", ".join(known),
                "可用的键：" + ", ".join(known),
                "S51",
            )
        elif not _fits(value, known[key]):
            yield fault(
                "error",
                f"{name}: {key}",
                f"{value!r} is not allowed",
                f"取值{value!r}不合法",
                _allowed(known[key]),
                _allowed(known[key]),
                "S51",
            )
    first, last = document.get("start_step"), document.get("stop_step")
    for key, value in (("start_step", first), ("stop_step", last)):
        if value is None:
            yield fault(
                "error",
                f"{name}: {key}",
                "missing",
                "缺失",
                "name the first and the last step to record",
                "需指定采集的首末step",
                "S51",
            )
    if isinstance(first, int) and isinstance(last, int):
        if first < 0 or last < first:
            yield fault(
                "error",
                f"{name}: stop_step",
                f"steps {first} to {last} are none",
                f"step {first}到{last}不合法",
                "0 <= start_step <= stop_step",
                "0 <= start_step <= stop_step",
                "S51",
            )
        elif total is not None and last >= total:
            yield from too_few_steps(f"{name}: stop_step", last, total)
        yield from too_many(f"{name}: stop_step", last - first + 1)
    if document.get("analyse_mode", -1) == -1:
        yield fault(
            "warning",
            f"{name}: analyse_mode",
            "raw data only",
            "仅有原始数据",
            "0 analyses after collection; else parse offline with mindspore.profiler.profiler.analyse",
            "设为0可在采集后解析；否则需用mindspore.profiler.profiler.analyse离线解析",
            "S53",
        )
    if document.get("export_type") == 1:
        yield database_only(f"{name}: export_type")
    if document.get("profiler_level", 0) in (-1, 0) and (ranks or 0) > 1:
        yield low_level(f"{name}: profiler_level", ranks or 0)


def _fits(value: Any, allowed: Mapping[str, Any]) -> bool:
    if allowed["type"] == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return bool(allowed.get("from", value) <= value <= allowed.get("to", value))


def _allowed(allowed: Mapping[str, Any]) -> str:
    if allowed["type"] == "bool":
        return "true | false"
    return f"{allowed['from']} … {allowed['to']}" if "from" in allowed else "0, 1, 2, …"


def check_environment(options: Mapping[str, Any], name: str, ranks: int | None) -> Iterator[Fault]:
    """The value of MS_PROFILER_OPTIONS (S44, S52)."""
    if options.get("start") is not True:
        yield fault(
            "error",
            f"{name}: start",
            "start is not true: nothing is collected",
            "start不为true：不会采集",
            '"start": true',
            '"start": true',
            "S52",
        )
    if (ranks or 1) > 1:
        yield fault(
            "error",
            name,
            "the environment variable serves a single device",
            "环境变量方式仅支持单卡",
            "call mindspore.profiler.profile in the script",
            "请在脚本中调用mindspore.profiler.profile",
            "S52",
        )
    for key in knowledge()["environment_refuses"]:
        if key in options:
            yield fault(
                "error",
                f"{name}: {key}",
                f"{key} does not work here",
                f"此处不支持{key}",
                "call mindspore.profiler.profile in the script",
                "请在脚本中调用mindspore.profiler.profile",
                "S52",
            )
    exports = options.get("export_type")
    if exports is not None and "text" not in str(exports).lower():
        yield database_only(f"{name}: export_type")


def check_schedule(place: str, values: Mapping[str, int], total: int | None) -> Iterator[Fault]:
    """A schedule's entries by name; those not set have the profiler's defaults (S49, S50, S84)."""
    for key, value in values.items():
        least = 1 if key == "active" else 0
        if value < least:
            yield fault(
                "error",
                place,
                f"{key}={value}: at least {least}",
                f"{key}={value}：至少为{least}",
                "the profiler warns and records something else than meant",
                "profiler会告警并改为采集其他step",
                "S49",
            )
    repeat, active = values.get("repeat", 0), values.get("active", 1)
    if repeat == 0:
        yield fault(
            "warning",
            place,
            "repeat=0 starts one more round than training completes",
            "repeat=0会多开启一轮无法完成的采集",
            "repeat=1; else do not trust the last step of the last folder",
            "设为repeat=1；否则最后一个目录的最后一个step不可信",
            "S49",
        )
    needed = max(repeat, 1) * (values.get("wait", 0) + values.get("warmup", 0) + active) + values.get("skip_first", 0)
    if total is not None and needed >= total:
        yield from too_few_steps(place, needed, total)
    yield from too_many(place, active)


def too_few_steps(place: str, needed: int, total: int) -> Iterator[Fault]:
    """The training ends before the collection does (S50)."""
    yield fault(
        "error",
        place,
        f"{needed} steps are needed, training runs {total}: the collection stays incomplete",
        f"需要{needed}个step，而训练只有{total}步：采集不完整",
        "repeat × (wait + warmup + active) + skip_first must be less than the number of training steps",
        "repeat×(wait+warmup+active)+skip_first须小于训练步数",
        "S50",
    )


def too_many(place: str, steps: int) -> Iterator[Fault]:
    """More steps than help (S84)."""
    if steps > limit("most_steps"):
        yield fault(
            "warning",
            place,
            f"{steps} steps are recorded",
            f"采集{steps}个step",
            f"on large networks {limit('most_steps'):.0f} steps are enough, and parse faster",
            f"大型网络{limit('most_steps'):.0f}个step即可，解析更快",
            "S84",
        )


def database_only(place: str) -> Fault:
    """Without text there are no step tables and no data pipeline files (S44)."""
    return fault(
        "warning",
        place,
        "only a database is written",
        "仅写出数据库",
        "add text: without it there is no step table and nothing of the data pipeline",
        "请加上text：否则没有step表和数据流水线数据",
        "S44",
    )


def low_level(place: str, ranks: int) -> Fault:
    """Without level 1 there is nothing of communication (S44)."""
    return fault(
        "warning",
        place,
        f"{ranks} ranks without communication files",
        f"{ranks}个rank缺少通信数据",
        "profiler_level Level1 brings communication.json and communication_matrix.json",
        "profiler_level设为Level1可得到communication.json与communication_matrix.json",
        "S44",
    )
