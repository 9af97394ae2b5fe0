"""Why facts of a mutant may differ although no problem names its file: what is missing here has to be told instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Explanation:
    """A kind of mutant of which nothing can be told, or need not be."""

    mutations: tuple[str, ...]
    """Names of mutations, with wildcards."""
    what: str
    """Regular expression that the file's name with what was done to it holds."""
    reason: str
    quiet: bool = False
    """Only where no finding comes or goes."""
    believable: bool = False
    """The mutant is a recording that a profiler could have written: what it says may be certain."""


EXPLAINED: tuple[Explanation, ...] = (
    Explanation(
        ("bytes.cut_lines", "csv.delete_rows"), r"\.(csv|txt): ",
        "whole rows are gone: what is left is a smaller recording that a profiler could have written, and no other "
        "file of the profile counts these rows",
    ),
    Explanation(
        ("db.delete_rows", "db.duplicate_rows"),
        r"COMPUTE_TASK_INFO|STRING_IDS|ENUM_|AICORE_FREQ|NPU_INFO|CANN_API|TASK_PMU",
        "the table is numbered by a column of its own, so that its gaps mean nothing; calls of several threads may be "
        "alike to the last digit",
    ),
    Explanation(
        ("csv.duplicate_rows",), r"operator_details\.csv: ",
        "calls of several threads may be alike to the last digit, and in real tables some are", quiet=True,
    ),
    Explanation(
        ("json.delete_key",), r"",
        "one sample or size of many, or a key that only some versions write: as such a version would have left it",
    ),
    Explanation(
        ("csv.rename_column", "csv.delete_column", "json.rename_key", "db.rename_column"), r"",
        "a column or key that not every version writes, and unknown ones beside it are what newer versions bring; "
        "those that every version writes are told where they are gone",
    ),
    Explanation(
        ("csv.odd_cell", "csv.odd_cells", "csv.odd_column"), r"'(|NaN|nan|N/A|null|None|--?| |\\t)' in one",
        "an empty cell: profilers leave one empty, or write N/A, where they measured nothing",
    ),
    Explanation(
        ("csv.odd_cell", "csv.odd_cells", "csv.odd_column", "csv.thousands", "csv.decimal_comma",
         "csv.negative_column", "csv.extreme_cell"),
        r"(ratio|cycles|time\(us\)|Dim|Num|[Ii]d|utilization)( negative)?\W*$",
        "a counter or number of kernels that most kernels do not have: read as not measured",
    ),
    Explanation(
        ("csv.thousands", "csv.decimal_comma"), r"Input Shapes$",
        "a text, shown as it stands",
    ),
    Explanation(
        ("csv.odd_cell", "csv.extreme_cell"), r"in one row of Step( I[Dd])?$",
        "a step may have any name; this one is a step of its own, without kernels",
    ),
    Explanation(
        ("csv.extreme_cell",), r": (-[-\d.e]+ in one row of Overlapped|-\S+e-\d+ in one row of Preparing)$",
        "the profiler computes it as a difference, which rounding makes negative; the sum that it breaks is broken by "
        "less than a fiftieth of the step", quiet=True,
    ),
    Explanation(
        ("csv.extra_cells", "csv.missing_cells", "csv.shifted_cells"), r"(kernel_details|op_summary)\S*\.csv",
        "one kernel of many: its cells hold commas between quotation marks, so that they are not counted at the speed "
        "of reading",
    ),
    Explanation(
        ("db.odd_values",), r"(HOST_INFO|NPU_INFO|META_DATA|RANK_DEVICE_MAP|PYTORCH_API|TASK_PMU|AICORE_FREQ|ENUM_)",
        "names of hosts, cards and calls, counters and settings are whatever they are",
    ),
    Explanation(
        ("db.odd_values",), r"in one row of \d+ of CANN_API\.name$",
        "the name of a call is a number of its text: another number is another call", quiet=True,
    ),
    Explanation(
        ("db.odd_values",), r"'[^']+' in one row of \d+ of STRING_IDS\.value$",
        "one name of many is another one: a name is whatever somebody gave it", quiet=True,
    ),
    Explanation(
        ("db.odd_values",),
        r"(CommAnalyzer|StepTraceTime|STEP_TIME)\w*\.(step|type|id|group_name|hccl_op_name|\w+_rank|transport_type)",
        "names and numbers of steps, groups, collectives and ranks: another name is a name, and what belongs to no "
        "known step is of another one",
    ),
    Explanation(
        ("db.odd_values",), r"'' in one row of \d+ of CommAnalyzer\w+\.\w+",
        "one time of many is empty: it was not measured",
    ),
    Explanation(
        ("db.odd_values",), r"(Shapes|DataTypes|Formats|opState|blockDim|blockNum|streamId|deviceId)\b",
        "a text or number that may be anything: shapes, types of data, streams",
    ),
    Explanation(
        ("db.empty_table", "db.drop_table", "db.view"),
        r"(TASK_PMU_INFO|PYTORCH_API|AICORE_FREQ|ENUM_|HOST_INFO|META_DATA|NPU_INFO)",
        "a table that only some levels of detail and versions fill",
    ),
    Explanation(
        ("json.wrapped", "json.top"), r"profiler_(metadata|info)",
        "programs write entries of their own into this file: unknown ones are theirs",
    ),
    Explanation(
        ("json.top",), r"communication(_matrix)?\.json: holds \{\}$",
        "what is written where nothing was communicated, or only one of both files was asked for", quiet=True,
    ),
    Explanation(
        ("json.odd_value", "json.same_odd_value"), r"pipeline_profiling_\d+\.json: .*'length'",
        "a queue of no places: how many it has is not known then",
    ),
    Explanation(
        ("json.odd_value", "json.same_odd_value", "json.huge_number"), r"profiler_(info|metadata)",
        "a setting or variable of the environment: its value is whatever somebody set",
    ),
    Explanation(
        ("json.odd_value", "json.same_odd_value", "json.huge_number"),
        r"for (every )?'(op_type|name|cat|pid|tid|id|args|ph|pg_name|group_name|Transport Type|\d+|with_stack)'",
        "a name, a number that stands for one, or one sample of many",
    ),
    Explanation(
        ("json.odd_value", "json.same_odd_value"), r"communication(_matrix)?\.json",
        "one size or time is zero or absent, as that of a transport that moved nothing",
    ),
    Explanation(
        ("file.missing", "race.vanish"), r"",
        "the only rank's only file of its kind: absent and never written are the same, and the report's missing "
        "evidence names what would have brought more",
    ),
    Explanation(
        ("bytes.cut",), r"\.(csv|txt): cut after",
        "cut inside the last number of the last row: a number of fewer digits is a number, and files without a last "
        "line end are in use",
    ),
    Explanation(
        ("meaning.*_exchanged",), r"exchanged$",
        "two ranks, or two columns, that hold nearly the same: the numbers are as true as before", quiet=True,
    ),
    Explanation(
        ("meaning.computing_and_free_exchanged", "meaning.*_unit"), r"cluster_step_trace_time\.csv: ",
        "the step table of a cluster analysis is alone, with neither kernels nor a statistic beside it: a device that "
        "mostly idles, and one that computes more than others, are devices", believable=True,
    ),
    Explanation(
        ("meaning.twice_the_steps",), r"cluster_step_trace_time\.csv: ",
        "further steps of single ranks in the step table of a cluster analysis: told as steps that most ranks lack, "
        "and measurements all the same", believable=True,
    ),
    Explanation(
        ("meaning.*_everywhere",), r"cluster_step_trace_time\.csv: ",
        "the step table of a cluster analysis, in another unit on all ranks: it is alone, with neither kernels nor a "
        "statistic beside it",
    ),
    Explanation(
        ("meaning.duration_unit_everywhere",), r"kernel_details\.csv: ",
        "a table of kernels alone: nothing beside it tells how long they are, and a device that mostly idles is one",
    ),
    Explanation(
        ("meaning.exposed_and_overlapped_exchanged",), r"cluster_step_trace_time\.csv: ",
        "two parts of one sum in the step table of a cluster analysis, which has neither kernels nor stages beside it",
    ),
    Explanation(
        ("db.odd_values",), r"((TASK|CANN_API)\.connectionId|'(nan|None)' in)",
        "a link that leads nowhere, as that of a kernel whose launch was not recorded; a number that was not measured",
    ),
    Explanation(
        ("csv.odd_cell", "csv.odd_cells", "csv.extreme_cell"), r"(Stream ID|'１２' in one row of \w+)$",
        "a stream may have any name; full-width digits are digits",
    ),
    Explanation(
        ("csv.odd_column",), r"(State|Formats|Data Types|[Nn]ame|Shapes?|Device_id|Context|Context ID|pid|Stage)$",
        "a text or name that may be anything", quiet=True,
    ),
    Explanation(
        ("csv.unit_in_part",), r"",
        "some rows of one column are of another size: so are the kernels and calls of another part of a recording",
    ),
    Explanation(
        ("bytes.zero_tail",), r"\.tar: ",
        "zeros from within the padding behind an entry on: an archive of fewer files, as one that was packed so",
        quiet=True,
    ),
    Explanation(
        ("json.same_keys",), r"trace_view\.json: ",
        "one event of thousands with another name, place or time: the later of two values is as true as the earlier",
        quiet=True,
    ),
    Explanation(
        ("csv.another_rank",),
        r"mem|kernel_details|operator_details|op_summary|step_trace|cluster_analyse|hccl_raw|minddata|dataset",
        "samples, kernels, operators and steps as a longer recording of the same rank has them", quiet=True,
    ),
    Explanation(
        ("meaning.preparing_unit",), r"",
        "a host that runs ahead of its device prepares for as long as several steps; no finding rests on it",
        quiet=True,
    ),
    Explanation(
        ("meaning.event_duration_unit",), r"",
        "launches of microseconds are milliseconds then, which still end within the recording", quiet=True,
    ),
    Explanation(
        ("json.odd_value", "json.same_odd_value"), r"flops_summary_\d+\.json: '0' for '",
        "no work at all is work that was not counted: other ranks of its stage tell theirs", quiet=True,
    ),
    Explanation(
        ("csv.odd_cell", "csv.odd_cells", "csv.odd_column"), r"in one row of \d+ of (kernel|op)_(type|name)$",
        "one name of many is another one: a name is whatever somebody gave it", quiet=True,
    ),
    Explanation(
        ("meaning.memory_unit",), r"",
        "one column with nothing beside it that tells of the card's memory; no finding rests on it", quiet=True,
    ),
    Explanation(
        ("meaning.start_unit", "meaning.duration_unit", "meaning.kernel_clock"), r"",
        "a few kernels, picked from a recording and with gaps between them: nothing overlaps yet", quiet=True,
    ),
    Explanation(
        ("meaning.slower_run_among_others", "meaning.twice_the_steps", "meaning.computing_unit", "meaning.free_unit"),
        r"",
        "the step table is alone, as the kernels beside it are cut or of other steps: a longer or slower run is one",
        quiet=True,
    ),
    Explanation(
        ("meaning.processor_use_in_thousandths",), r"",
        "a machine that idles: ten times its use is still less than all of it", quiet=True,
    ),
)  # fmt: skip


def explain(mutation: str, file: str, done: str, *, verdicts_moved: bool) -> str | None:
    """Why nothing is told of this mutant; None where there is no reason."""
    text = f"{file}: {done}"
    for each in EXPLAINED:
        fits = any(fnmatchcase(mutation, name) for name in each.mutations) and re.search(each.what, text)
        if fits and not (each.quiet and verdicts_moved):
            return each.reason
    return None


def is_believable(mutation: str, done: str) -> bool:
    """Whether nothing about the mutant tells it from a true recording."""
    return any(
        each.believable and any(fnmatchcase(mutation, name) for name in each.mutations) and re.search(each.what, done)
        for each in EXPLAINED
    )
