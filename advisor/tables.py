"""The canonical tables: what every layout and version is translated into.

A `Table` names its columns, their type and unit, and the headings under which files of different versions carry them.
Readers in `sources/` yield these columns only; facts never see a file's own heading. Times of day are integer
nanoseconds (`_ns`: more digits than a float carries), durations microseconds (`_us`, float), sizes bytes.
A value that is missing, unreadable, NaN or infinite is NA, never zero.
"""

from __future__ import annotations

from msgspec import Struct

LONGEST_TEXT = 4096
"""Characters of a name, shape or message that are kept; damaged files hold "names" of megabytes."""
MOST_COLUMNS = 10_000
"""Cells of a row at most: what has more is damage, and each costs memory."""
NUMBERED = "#"
"""How the names of steps begin that no table names: their numbers follow."""
LARGEST = 1e15
"""Thirty years in microseconds, a petabyte: no time, size or count of a training step comes near."""
LONGEST_HEADING = 200
"""Characters; no column of a profile is named at such length."""


class Column(Struct, frozen=True):
    name: str
    dtype: str
    """One of str, int, float, ns (text or number in `scale` units, read as exact integer nanoseconds), ints (list)."""
    headings: tuple[str, ...] = ()
    """Headings in files, canonical spelling first; matched without case, spaces and unit suffix differences."""
    scale: float = 1.0
    """File value × scale = canonical value."""
    required: bool = False
    keys: tuple[str, ...] = ()
    """What JSON files and databases call it: all the keys and columns that it is read or computed from."""


class Table(Struct, frozen=True):
    name: str
    meaning: str
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def _c(
    name: str, dtype: str, *headings: str, scale: float = 1.0, required: bool = False, keys: tuple[str, ...] = ()
) -> Column:
    return Column(name, dtype, headings, scale, required, keys)


STEPS = Table(
    "steps",
    "phases of each step, device time",
    (
        _c("device", "str", "Device_id", "Device ID"),
        _c("step", "str", "Step", keys=("step",)),
        _c("computing_us", "float", "Computing", required=True, keys=("computing",)),
        _c(
            "exposed_us",
            "float",
            "Communication(Not Overlapped)",
            required=True,
            keys=("communication_not_overlapped",),
        ),
        _c("overlapped_us", "float", "Overlapped", keys=("overlapped",)),
        _c("communication_us", "float", "Communication", keys=("communication",)),
        _c("free_us", "float", "Free", required=True, keys=("free",)),
        _c("stage_us", "float", "Stage", keys=("stage",)),
        _c("bubble_us", "float", "Bubble", keys=("bubble",)),
        _c(
            "exposed_without_receive_us",
            "float",
            "Communication(Not Overlapped and Exclude Receive)",
            keys=("communication_not_overlapped_and_exclude_receive",),
        ),
        _c("preparing_us", "float", "Preparing", keys=("preparing",)),
    ),
)

STEP_PHASES = Table(
    "step_phases",
    "iteration gap, forward+backward, tail of each step (older MindSpore)",
    (
        _c("step", "str", "step_num"),
        _c("total_us", "float", "total"),
        _c("interval_us", "float", "iteration_interval"),
        _c("fp_bp_us", "float", "fp_and_bp"),
        _c("tail_us", "float", "tail"),
        _c("start_us", "float", "start_point"),
        _c("fp_start_us", "float", "fp_point"),
        _c("bp_end_us", "float", "bp_point"),
        _c("end_us", "float", "end_point"),
    ),
)

ITERATIONS = Table(
    "iterations",
    "executions of graphs, as msprof counts them: each graph has its own numbers",
    (
        _c("device", "str", "Device_id", "Device ID"),
        _c("graph", "str", "Model ID"),
        _c("iteration", "str", "Iteration ID", keys=("Iteration ID",)),
        _c("end_ns", "ns", "Iteration End(us)", scale=1000.0, required=True, keys=("Iteration End",)),
        _c("time_us", "float", "Iteration Time(us)", required=True, keys=("Iteration Time(ns)",)),
        _c("begin_ns", "ns", "FP Start(us)", scale=1000.0, keys=("FP Start",)),
        _c("data_us", "float", "Data Aug Bound(us)", keys=("Data_aug Bound(us)",)),
    ),
)

STEP_PHASES_AVERAGE = Table(
    "step_phases_average",
    "the profiler's own average over the steps (older MindSpore), one row; files may be trimmed",
    STEP_PHASES.columns,
)

STEP_COLLECTIVES = Table(
    "step_collectives",
    "collectives inside the step trace (older MindSpore): one row per step and operation",
    (
        _c("step", "str"),
        _c("name", "str"),
        _c("stream", "str"),
        _c("start_us", "float"),
        _c("end_us", "float"),
        _c("duration_us", "float"),
    ),
)

KERNELS = Table(
    "kernels",
    "every kernel on the device",
    (
        _c("device", "str", "Device_id", "Device ID"),
        _c("step", "str", "Step Id", "Step ID"),
        _c("name", "str", "Name", "Op Name", "op_name", "kernel_name", keys=("name",)),
        _c("type", "str", "Type", "OP Type", "op_type", keys=("opType", "op_type")),
        _c("core", "str", "Accelerator Core", "Task Type", "Core Type", "kernel_type", keys=("taskType",)),
        _c("state", "str", "OP State"),
        _c(
            "start_ns",
            "ns",
            "Start Time(us)",
            "Task Start Time(us)",
            "task_start(us)",
            scale=1000.0,
            keys=("startNs", "ts"),
        ),
        _c(
            "duration_us",
            "float",
            "Duration(us)",
            "Task Duration(us)",
            "task_time(us)",
            required=True,
            keys=("startNs", "endNs", "dur"),
        ),
        _c("wait_us", "float", "Wait Time(us)", "Task Wait Time(us)"),
        _c("stream", "str", "Stream ID", "Stream Id", "stream_id"),
        _c("task", "str", "Task ID", "Task Id", "task_id"),
        _c("block_num", "float", "Block Num", "Block Dim", keys=("blockDim",)),
        _c("mix_block_num", "float", "Mix Block Num", "Mix Block Dim"),
        _c("input_shapes", "str", "Input Shapes", keys=("inputShapes",)),
        _c("input_dtypes", "str", "Input Data Types", keys=("inputDataTypes",)),
        _c("input_formats", "str", "Input Formats"),
        _c("output_shapes", "str", "Output Shapes"),
        _c("output_dtypes", "str", "Output Data Types"),
        _c("output_formats", "str", "Output Formats"),
        _c("mac_ratio", "float", "aic_mac_ratio", "mac_ratio", "mac_exe_ratio", "mac_ratio_extra"),
        _c("scalar_ratio", "float", "aic_scalar_ratio", "scalar_ratio", "scalar_exe_ratio"),
        _c("mte1_ratio", "float", "aic_mte1_ratio", "mte1_ratio", "mte1_exe_ratio", "mte1_ratio_extra"),
        _c("mte2_ratio", "float", "aic_mte2_ratio", "mte2_ratio", "mte2_exe_ratio"),
        _c("fixpipe_ratio", "float", "aic_fixpipe_ratio", "fixpipe_ratio", "fixpipe_exe_ratio"),
        _c("vec_ratio", "float", "aiv_vec_ratio", "vec_ratio", "vec_exe_ratio"),
        _c("aiv_scalar_ratio", "float", "aiv_scalar_ratio"),
        _c("aiv_mte2_ratio", "float", "aiv_mte2_ratio"),
        _c("aiv_mte3_ratio", "float", "aiv_mte3_ratio", "mte3_ratio", "mte3_exe_ratio"),
        _c("cube_utilization", "float", "cube_utilization(%)", scale=0.01),
        _c("cube_core_us", "float", "aicore_time(us)", "aic_time(us)"),
        _c("vector_core_us", "float", "aiv_time(us)"),
    ),
)

OPERATOR_TYPES = Table(
    "operator_types",
    "device time by operator type (and core type), whole profile",
    (
        _c("device", "str", "Device_id", "Device ID"),
        _c("type", "str", "OP Type", "op_type", "kernel_type", required=True, keys=("opType", "kernel_type")),
        _c("core", "str", "Core Type"),
        _c(
            "count",
            "float",
            "Count",
            "execution_frequency",
            required=True,
            keys=("globalTaskId", "execution_frequency"),
        ),
        _c("total_us", "float", "Total Time(us)", keys=("total_time", "startNs", "endNs")),
        _c("min_us", "float", "Min Time(us)"),
        _c("avg_us", "float", "Avg Time(us)"),
        _c("max_us", "float", "Max Time(us)"),
        _c("share", "float", "Ratio(%)", scale=0.01),
        _c("steps", "float"),
    ),
)
"""`share` is the file's own 0..1 of the device time: files may list only a part of the types. `steps` is 1 where a
row is one step's average."""

COLLECTIVE_TYPES = Table(
    "collective_types",
    "time of collectives by type, whole profile",
    (
        _c("device", "str", "Device_id", "Device ID"),
        _c("type", "str", "OP Type"),
        _c("count", "float", "Count"),
        _c("total_us", "float", "Total Time(us)"),
        _c("max_us", "float", "Max Time(us)"),
    ),
)
"""A call counts once, however many streams carry it."""

OPERATORS = Table(
    "operators",
    "device time operator by operator (older MindSpore: average per step)",
    (
        _c("name", "str", keys=("full_kernel_name", "full_op_name")),
        _c("type", "str", keys=("op_type",)),
        _c("core", "str"),
        _c("count", "float", keys=("execution_frequency", "op_occurrences")),
        _c("total_us", "float", keys=("execution_time", "op_total_time(ms)", "op_total_time(us)")),
        _c("input_shapes", "str"),
        _c("input_dtypes", "str"),
        _c("blocks", "float", keys=("block_dim",)),
        _c("graph", "int"),
    ),
)
"""`graph` is 0 for the operators of the training, where others evaluate; where nothing tells them apart it is empty."""

HOST_API = Table(
    "host_api",
    "host time by runtime interface",
    (
        _c("level", "str", "Level", keys=("type",)),
        _c("name", "str", "API Name", keys=("name",)),
        _c("total_us", "float", "Time(us)", "Total Time(us)", keys=("startNs", "endNs")),
        _c("count", "float", "Count"),
        _c("avg_us", "float", "Avg(us)", "Avg Time(us)"),
        _c("max_us", "float", "Max(us)", "Max Time(us)"),
    ),
)
"""The analyser's own export of it has no levels, and writes `Time` into each of its headings."""

FRAMEWORK_OPERATORS = Table(
    "framework_operators",
    "host time of the framework's operators, one row a call",
    (
        _c("name", "str", "Name"),
        _c("input_shapes", "str", "Input Shapes"),
        _c("self_us", "float", "Host Self Duration(us)"),
        _c("total_us", "float", "Host Total Duration(us)"),
    ),
)
"""Without order and without steps: it tells of the recording as a whole, beside tables that tell its length."""

COLLECTIVES = Table(
    "collectives",
    "one row per collective or point-to-point operation, step and rank",
    (
        _c("step", "str"),
        _c("name", "str", keys=("hccl_op_name", "opName")),
        _c("group", "str"),
        _c("kind", "str"),
        _c("start_ns", "ns", keys=("Start Timestamp(us)", "start_timestamp", "ts")),
        _c("elapsed_us", "float", keys=("Elapse Time(ms)", "elapse_time", "communication_operator_cost", "dur")),
        _c("transit_us", "float", keys=("Transit Time(ms)", "transit_time", "communication_cost")),
        _c("wait_us", "float", keys=("Wait Time(ms)", "wait_time", "wait_cost")),
        _c("sync_us", "float", keys=("Synchronization Time(ms)", "synchronization_time")),
        _c("idle_us", "float", keys=("Idle Time(ms)", "idle_time")),
        _c("reduce_us", "float"),
    ),
)
"""`kind` is p2p or collective; `name` carries no @group; `reduce_us` is only known from traces."""

TRANSPORTS = Table(
    "transports",
    "what each operation moved over each transport",
    (
        _c("step", "str"),
        _c("name", "str"),
        _c("group", "str"),
        _c("transport", "str", keys=("transport_type",)),
        _c("size_bytes", "float", keys=("Transit Size(MB)", "transit_size")),
        _c("time_us", "float", keys=("Transit Time(ms)", "transit_time")),
        _c("large_packet_ratio", "float", keys=("Large Packet Ratio", "large_packet_ratio")),
        _c("packets", "float", keys=("Size Distribution", "package_size")),
        _c("small_packets", "float"),
    ),
)
"""`transport` is HCCS, RDMA, PCIE, SIO or SDMA (repeats the others)."""

PACKETS = Table(
    "packets",
    "packet sizes of what each transport moved, one row per operation, transport and size",
    (
        _c("transport", "str"),
        _c("size_bytes", "float", keys=("Size Distribution", "package_size")),
        _c("count", "float", keys=("Size Distribution", "count")),
        _c("time_us", "float", keys=("Size Distribution", "total_duration")),
    ),
)
"""`time_us` is that of all `count` packets together."""

LINKS = Table(
    "links",
    "what each operation moved between two ranks",
    (
        _c("step", "str"),
        _c("name", "str"),
        _c("group", "str"),
        _c("source", "int", keys=("src_rank",)),
        _c("destination", "int", keys=("dst_rank",)),
        _c("transport", "str", keys=("Transport Type", "transport_type")),
        _c("size_bytes", "float", keys=("Transit Size(MB)", "transit_size", "link_info")),
        _c("time_us", "float", keys=("Transit Time(ms)", "transit_time", "link_info")),
        _c("operations", "float"),
        _c("aggregate", "str"),
    ),
)
"""Ranks are global where the group's members are known; `aggregate`: top1, middle, bottomN, total, empty (exact)."""

DATASET_STAGES = Table(
    "dataset_stages",
    "host time of each data pipeline operation by stage (dataset.csv)",
    (
        _c("operation", "str", "Operation", required=True),
        _c("stage", "str", "Stage", required=True),
        _c("count", "float", "Occurrences", required=True),
        _c("avg_us", "float", "Avg. time (us)", required=True),
        _c("info", "str", "Custom Info"),
    ),
)

PIPELINE_OPS = Table(
    "pipeline_ops",
    "the data pipeline's operations, root (consumer side) has id 0",
    (
        _c("op_id", "int", "op_id"),
        _c("type", "str", "op_type"),
        _c("workers", "int", "num_workers", keys=("num_workers",)),
        _c("queue_sizes", "ints", "output_queue_size", keys=("size",)),
        _c("queue_capacity", "int", "output_queue_length", keys=("length",)),
        _c("queue_average", "float", "output_queue_average_size"),
        _c("sampling_interval_us", "float", "sample_interval", scale=1000.0, keys=("sampling_interval",)),
        _c("parent", "int", "parent_id"),
        _c("children", "ints", "children_id", keys=("children",)),
    ),
)
"""`type` without the ending Op: Map, Batch, Generator, …; operations without a queue have an empty `queue_sizes`."""

PIPELINE_SUMMARY = Table(
    "pipeline_summary",
    "MindSpore's own reading of the data pipeline",
    (
        _c("op_id", "int", keys=("op_ids",)),
        _c("type", "str", keys=("op_names",)),
        _c("workers", "int", keys=("num_workers",)),
        _c("queue_average", "float", keys=("queue_average_size",)),
        _c("queue_used", "float", keys=("queue_utilization_pct",)),
        _c("queue_empty", "float", keys=("queue_empty_freq_pct",)),
        _c("cpu_percent_of_core", "float", keys=("avg_cpu_pct",)),
        _c("warning", "str", keys=("bottleneck_warning",)),
        _c("suggestion", "str", keys=("bottleneck_suggestion",)),
    ),
)

BATCHES = Table(
    "batches",
    "host side of each batch: iterator (no sinking) or device queue (sinking)",
    (
        _c("mode", "str"),
        _c("batch", "int"),
        _c("pipeline_us", "float"),
        _c("push_us", "float"),
        _c("total_us", "float"),
        _c("queue_size", "float"),
        _c("queue_capacity", "float"),
        _c("time_ns", "ns"),
    ),
)
"""`mode` is iterator or sink; `pipeline_us` is the wait for the pipeline, `push_us` the copy to the device queue."""

DATA_QUEUE = Table(
    "data_queue",
    "the device's data queue as GetNext finds it",
    (
        _c("node", "str"),
        _c("start_us", "float"),
        _c("end_us", "float"),
        _c("queue_size", "float"),
    ),
)

AICPU = Table(
    "aicpu",
    "AI CPU operators (GetNext among them)",
    (
        _c("name", "str", "Node", "node_type_name", "kernel_type", "op_type"),
        _c("start_us", "float", "Timestamp(us)", "run_start"),
        _c("compute_us", "float", "Compute_time(us)", keys=("execution_time",)),
        _c("memcpy_us", "float", "Memcpy_time(us)"),
        _c("dispatch_us", "float", "Dispatch_time(us)", keys=("dispatch_time",)),
        _c("total_us", "float", "Total_time(us)", keys=("total_time",)),
    ),
)

HOST_CPU = Table(
    "host_cpu",
    "processor use of the host, one row per sample",
    (
        _c("time_ns", "ns", keys=("time_stamp",)),
        _c("cores", "int", keys=("cpu_processor_num",)),
        _c("user_share", "float", keys=("user_utilization",)),
        _c("system_share", "float", keys=("sys_utilization",)),
        _c("io_share", "float", keys=("io_utilization",)),
        _c("idle_share", "float", keys=("idle_utilization",)),
        _c("context_switches", "float", keys=("context_switch_count",)),
        _c("runnable", "float", keys=("runnable_process", "runable_processes", "runnable_processes")),
        _c("process_user_percent", "float", keys=("process_info", "user_utilization")),
        _c("process_system_percent", "float", keys=("process_info", "sys_utilization")),
    ),
)
"""Shares are of the whole machine (0..1), process figures percent of one core."""

PIPELINE_CPU = Table(
    "pipeline_cpu",
    "processor use of each pipeline operation, averages over the samples",
    (
        _c("op_id", "int", keys=("op_id",)),
        _c("user_percent", "float", keys=("op_info", "user_utilization")),
        _c("system_percent", "float", keys=("sys_utilization",)),
        _c("samples", "int"),
    ),
)

MEMORY = Table(
    "memory",
    "device memory over time by component",
    (
        _c("component", "str", "Component", keys=("component",)),
        _c("time_ns", "ns", "Timestamp(us)", scale=1000.0, keys=("timestamp", "timestampNs")),
        _c("allocated_bytes", "float", "Total Allocated(MB)", scale=1048576.0, keys=("totalAllocated",)),
        _c("reserved_bytes", "float", "Total Reserved(MB)", scale=1048576.0, keys=("totalReserved", "hbm")),
        _c("active_bytes", "float", "Total Active(MB)", scale=1048576.0, keys=("totalActive",)),
        _c("device", "str", "Device Type"),
    ),
)

OPERATOR_MEMORY = Table(
    "operator_memory",
    "device memory by allocating operator",
    (
        _c("name", "str", "Name", keys=("name",)),
        _c("size_bytes", "float", "Size(KB)", scale=1024.0, keys=("size",)),
        _c("allocated_ns", "ns", "Allocation Time(us)", scale=1000.0, keys=("allocationTime",)),
        _c("released_ns", "ns", "Release Time(us)", scale=1000.0, keys=("releaseTime",)),
        _c("device", "str", "Device Type"),
    ),
)

MODULE_MEMORY = Table(
    "module_memory",
    "device memory by runtime module",
    (
        _c("component", "str", "Component", keys=("moduleId",)),
        _c("time_ns", "ns", "Timestamp(us)", scale=1000.0, keys=("timestampNs",)),
        _c(
            "reserved_bytes", "float", "Total Reserved(KB)", "Total Reserved(MB)", scale=1024.0, keys=("totalReserved",)
        ),
        _c("device", "str", "Device"),
    ),
)

L2_CACHE = Table(
    "l2_cache",
    "hit rates of the second-level cache",
    (
        _c("name", "str", "Op Name"),
        _c("task", "str", "Task Id"),
        _c("stream", "str", "Stream Id"),
        _c("hit_rate", "float", "Hit Rate"),
        _c("victim_rate", "float", "Victim Rate"),
    ),
)

OPERATOR_ACCESS = Table(
    "operator_access",
    "operators measured alone: blocks, traffic with memory, hits in the second-level cache; one row a launch",
    (
        _c("name", "str", "Op Name"),
        _c("type", "str", "Op Type"),
        _c("core", "str"),
        _c("duration_us", "float", "Task Duration(us)"),
        _c("blocks", "float", "Block Dim"),
        _c("slowest_us", "float"),
        _c("mean_us", "float"),
        _c("read_kb", "float", "read_main_memory_datas(KB)"),
        _c("write_kb", "float", "write_main_memory_datas(KB)"),
        _c("hits", "float"),
        _c("misses", "float"),
        _c("fetch_share", "float"),
    ),
)
"""`slowest_us` and `mean_us` are times of blocks, `fetch_share` is the part of the slowest ones that waits for
instructions; hits and misses are those of reads."""

FLOPS = Table(
    "flops",
    "work of the model per rank",
    (
        _c("flop", "float", keys=("FLOPs",)),
        _c("flop_per_s", "float", keys=("FLOPS",)),
        _c("utilization", "float", keys=("FLOPS_Utilization",)),
    ),
)

CLUSTER_PHASES = Table(
    "cluster_phases",
    "cluster step trace of older MindSpore, one rank",
    (
        _c("step", "str"),
        _c("computation_us", "float", "computation_time", keys=("computation",)),
        _c("exposed_us", "float", "communication_alone_time"),
        _c("stage_us", "float", "stage_time"),
        _c("receive_us", "float", "receive_alone_time"),
        _c("exposed_collective_us", "float", "collective_communication_alone_time", "collective_communication_time"),
    ),
)

CLUSTER_PHASES_AVERAGE = Table(
    "cluster_phases_average",
    "the writer's own average over the steps of cluster_phases, one row; files may be trimmed",
    CLUSTER_PHASES.columns,
)

TRACE = Table(
    "trace",
    "timeline events (streamed, see sources/streams/trace.py)",
    (
        _c("name", "str", keys=("name",)),
        _c("start_us", "float", keys=("ts",)),
        _c("duration_us", "float", keys=("dur",)),
    ),
)

HOST_STAGES = Table(
    "host_stages",
    "host time by module, event and stage",
    (
        _c("module", "str"),
        _c("event", "str"),
        _c("stage", "str"),
        _c("level", "str"),
        _c("start_us", "float"),
        _c("end_us", "float"),
        _c("duration_us", "float"),
        _c("info", "str"),
    ),
)

HOST_MEMORY = Table(
    "host_memory",
    "host memory by module, event and stage",
    (
        _c("module", "str"),
        _c("event", "str"),
        _c("stage", "str"),
        _c("time_us", "float"),
        _c("used_bytes", "float"),
    ),
)

DYNAMIC_SHAPES = Table(
    "dynamic_shapes",
    "operators with their shape and time step by step",
    (
        _c("step", "str", keys=("step",)),
        _c("name", "str", keys=("op_full_name",)),
        _c("type", "str", keys=("op_type",)),
        _c("shapes", "str", keys=("shape_info",)),
        _c("duration_us", "float", keys=("dur",)),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        STEPS,
        STEP_PHASES,
        ITERATIONS,
        STEP_PHASES_AVERAGE,
        STEP_COLLECTIVES,
        KERNELS,
        OPERATOR_TYPES,
        COLLECTIVE_TYPES,
        OPERATORS,
        HOST_API,
        FRAMEWORK_OPERATORS,
        COLLECTIVES,
        TRANSPORTS,
        PACKETS,
        LINKS,
        DATASET_STAGES,
        PIPELINE_OPS,
        PIPELINE_SUMMARY,
        BATCHES,
        DATA_QUEUE,
        AICPU,
        HOST_CPU,
        PIPELINE_CPU,
        MEMORY,
        OPERATOR_MEMORY,
        MODULE_MEMORY,
        L2_CACHE,
        OPERATOR_ACCESS,
        FLOPS,
        CLUSTER_PHASES,
        CLUSTER_PHASES_AVERAGE,
        TRACE,
        HOST_STAGES,
        HOST_MEMORY,
        DYNAMIC_SHAPES,
    )
}

FILES = {
    "steps": "step_trace_time.csv", "iterations": "step_trace_*.csv", "step_phases": "step_trace_raw_*_detail_time.csv",
    "step_phases_average": "step_trace_raw_*_detail_time.csv",
    "step_collectives": "step_trace_raw_*_detail_time.csv", "kernels": "kernel_details.csv",
    "operator_types": "op_statistic.csv", "operators": "aicore_intermediate_*_detail.csv",
    "collective_types": "communication_statistic_*.csv",
    "host_api": "api_statistic.csv", "framework_operators": "operator_details.csv",
    "collectives": "communication.json", "transports": "communication.json",
    "packets": "communication.json",
    "links": "communication_matrix.json", "dataset_stages": "dataset.csv",
    "pipeline_ops": "minddata_pipeline_raw_*.csv", "pipeline_summary": "minddata_pipeline_summary_*.json",
    "batches": "dataset_iterator_profiling_*.txt or device_queue_profiling_*.txt",
    "data_queue": "minddata_aicpu_*.txt", "aicpu": "data_preprocess.csv",
    "host_cpu": "minddata_cpu_utilization_*.json", "pipeline_cpu": "minddata_cpu_utilization_*.json",
    "memory": "memory_record.csv", "operator_memory": "operator_memory.csv", "module_memory": "npu_module_mem.csv",
    "l2_cache": "l2_cache.csv", "operator_access": "OPPROF_*/Memory.csv",
    "flops": "flops_summary_*.json", "cluster_phases": "ascend_cluster_analyse_*.csv",
    "cluster_phases_average": "ascend_cluster_analyse_*.csv",
    "trace": "trace_view.json", "host_stages": "host_info/timeline_*.json",
    "host_memory": "host_info/host_memory_*.csv",
    "dynamic_shapes": "dynamic_shape_info_*.json",
}  # fmt: skip
"""The file in which an engineer looks for a table, for words about missing evidence; other profilers' names for them
and the settings that bring them: `knowledge_base/writers.yaml`."""
