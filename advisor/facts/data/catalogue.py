"""The catalogue of `data.`, `queue.` and `pipeline_op.` facts: names, units and what they mean."""

from __future__ import annotations

from advisor.facts.base import FactKind, kind

_ANY = "pipeline_ops|pipeline_summary|batches|data_queue|dataset_stages"
_BATCH = "batches|dataset_stages"
_WORK = "dataset_stages"
_DATA = (
    ("mode", "text", "iterator (the loop fetches batches) or sink (a thread sends them to the device)", "", _ANY),
    ("batches", "count", "batches that reached the loop or the device", "", _BATCH),
    ("step_us", "us", "the step that its shares are of", "mean interval between batches over the steady part, without "
     "those that filled the queue and those that emptied it; the device's step where its gap between steps is known",
     "batches"),
    ("sampling_interval_us", "us", "from one sample of its queues to the next: as the processors' samples lie apart, "
     "else as the files state it", "", "pipeline_ops"),
    ("step_median_us", "us", "typical interval between batches", "median over the steady part", "batches"),
    ("wait_us", "us", "time a step waits for its data", "iterator: mean time in GetNext, steady part; sink: the "
     "iteration gap of the step trace, else the sending thread's wait for the pipeline; never more than the idle time",
     _BATCH),
    ("wait_share", "ratio", "the wait as a share of the step", "wait ÷ mean interval, or gap ÷ step", _BATCH),
    ("starved_us", "us", "the part of the wait in which the pipeline was waited for, not the sending",
     "wait; in sink mode no more than interval − push", _BATCH),
    ("starved_share", "ratio", "the same as a share of the step", "", _BATCH),
    ("device_us", "us", "what the device computes in a step: no feeding of it makes the step shorter",
     "the share of its own row, no more than its time there", _BATCH),
    ("device_wait_us", "us", "time per batch that the sending thread rests because the device has batches enough "
     "(sink)", "WaitForAscend stage of dataset.csv", _WORK),
    ("device_wait_share", "ratio", "the same as a share of the interval between batches (sink)", "", _WORK),
    ("pipeline_limit_us", "us", "least interval at which the pipeline delivers batches, however early it is asked",
     "largest work ÷ workers of its operations, of those whose work and workers are told", _WORK),
    ("saving_free_host_us", "us", "what would be saved if other processes left the host", "modelled step now − with "
     "work = processor time and all processors", "pipeline_cpu"),
    ("saving_fewer_workers_us", "us", "what would be saved if no time went into switching between threads", "modelled "
     "step now − with work = the user part of processor time, workers ≤ processors", "pipeline_cpu"),
    ("own_us", "us", "the step if data were always ready", "interval − wait, or the interval while the pipeline rests "
     "where that is shorter", _BATCH),
    ("first_wait_us", "us", "wait for the first batch: start-up of the pipeline", "", "batches"),
    ("first_wait_share", "ratio", "wait for the first batch as a share of the whole recording", "", "batches"),
    ("wait_spread", "ratio", "part of the batches that carries the waiting", "(Σ wait)² ÷ (n × Σ wait²): 1 all alike, "
     "1/k every k-th", "batches"),
    ("wait_longest_us", "us", "longest wait in the steady part", "", "batches"),
    ("pipeline_wait_us", "us", "time the sending thread waits for the pipeline, per batch (sink)", "", "batches"),
    ("pipeline_wait_share", "ratio", "the same as a share of the interval between batches (sink)", "", "batches"),
    ("push_us", "us", "time to send a batch to the device (sink)", "", "batches"),
    ("push_share", "ratio", "sending as a share of the interval between batches (sink)", "", "batches"),
    ("late_share", "ratio", "part of the device's time in GetNext that began before its batch was sent (sink)",
     "executions that begin before the end of their push ÷ all but the first, by time", "batches"),
    ("jitter", "ratio", "how far slow intervals are above the typical one", "(95th percentile − median) ÷ median",
     "batches"),
    ("pause_count", "count", "batches after which the loop's own part takes far longer than usual (iterator)",
     "intervals − waits that lie apart from the others, and last twice as long at least", "batches"),
    ("pause_us", "us", "how much longer it takes then", "mean of those − median of the others", "batches"),
    ("pause_cost_us", "us", "what these pauses cost, per batch", "Σ beyond the usual ÷ batches", "batches"),
    ("pause_cost_share", "ratio", "the same as a share of the loop's time", "", "batches"),
    ("pause_period", "count", "every how many batches the loop pauses, where that is regular", "", "batches"),
    ("undisturbed_us", "us", "interval while the pipeline had nothing left to do and its queue only emptied", "median "
     "over at least five batches at the end that each found a smaller queue", "batches"),
    ("disturbance_share", "ratio", "part of the step that disappears once the pipeline rests: it takes processors or "
     "the interpreter lock from the loop", "1 − undisturbed ÷ mean interval", "batches"),
    ("gil_wait_us", "us", "mean wait of a pipeline thread for the Python interpreter lock, per acquisition",
     "AcquireGIL stages of dataset.csv", _WORK),
    ("gil_wait_own_us", "us", "the part of it for which threads of the pipeline wait for one another",
     "M/M/1//N of the threads that run Python and the processor time of their operations", _WORK),
    ("gil_wait_share", "ratio", "threads that wait for the interpreter lock, on average", "Σ AcquireGIL ÷ wall", _WORK),
    ("loop_cpu_us", "us", "processor time per step outside the pipeline's threads",
     "(process − operations − sampler) × interval", "host_cpu"),
    ("loop_cpu_share", "ratio", "the same as a share of the step", "", "host_cpu"),
    ("workers", "count", "workers of all operations", "", "pipeline_ops"),
    ("busiest_share", "ratio", "busy share of the busiest operation", "", _WORK),
    ("busiest_cpu_share", "ratio", "part of the busiest operation's work that is processor time", "", "pipeline_cpu"),
    ("operations", "count", "operations of the pipeline that could be judged", "", "pipeline_ops|dataset_stages"),
    ("steepest_rise", "ratio", "largest pipeline_op.starvation_rise", "", "pipeline_ops"),
    ("prefetch_current", "count", "batches the last queue holds", "", "pipeline_ops|batches"),
    ("prefetch_needed", "count", "batches that must lie ready to bridge the longest pause", "capacity + longest wait ÷ "
     "the loop's own step", "batches"),
)  # fmt: skip
_QUEUE = (
    ("empty_share", "ratio", "how often it was empty"),
    ("used_share", "ratio", "mean fill ÷ capacity"),
    ("full_share", "ratio", "how often it was full"),
    ("samples", "count", "samples or batches these shares rest on"),
    ("capacity", "count", "what it holds"),
)
_OPERATION = (
    ("type", "text", "Map, Batch, Generator, …", "", "pipeline_ops"),
    ("mode", "text", "iterator or sink", "", _ANY),
    ("workers", "count", "num_parallel_workers as configured", "", "pipeline_ops"),
    ("takes_workers", "bool", "num_parallel_workers can be set for it", "", "pipeline_ops"),
    ("is_source", "bool", "it reads from outside the pipeline", "", "pipeline_ops"),
    ("python", "bool", "it runs Python functions (absent where that cannot be told)", "", _WORK),
    ("service_us", "us", "time a worker spends on a row", "Σ own work ÷ rows (WorkerProcess, or __next__)", _WORK),
    ("rows_per_batch", "number", "rows it handles per batch", "", _WORK),
    ("work_us", "us", "worker time per batch", "Σ own work ÷ batches produced", _WORK),
    ("busy_share", "ratio", "how busy its workers are", "utilisation law: rows × service ÷ (workers × wall); a "
     "generator's __next__ is not divided by its workers; below a Concat ÷ data.wait_spread", _WORK),
    ("workers_at_work", "number", "of its workers, those that are at work at once, on average; only where nobody tells "
     "how many there are, nor any queue", "Σ own work ÷ wall", "dataset_stages"),
    ("beside_busy_share", "ratio", "how busy the busiest of the other operations is, at most: with one worker where "
     "nobody tells how many there are", "", "dataset_stages"),
    ("input_wait_share", "ratio", "how long it waits for rows", "Σ GetFromPreviousOp ÷ wall", "dataset_stages"),
    ("awaited_share", "ratio", "how long the operation behind it waits for its rows", "Σ GetFromPreviousOp there (Σ "
     "WorkerGet of its only worker) ÷ wall", "dataset_stages"),
    ("is_busiest", "bool", "no other operation is busier", "", _WORK),
    ("is_steepest", "bool", "starvation begins here: largest fall from input to output queue", "", "pipeline_ops"),
    ("is_hungriest", "bool", "no other operation uses more processor", "", "pipeline_cpu"),
    ("starvation_rise", "ratio", "fall of queue use from input to output", "use of the fullest-needed input (1 for a "
     "source; the emptiest branch of a join, the fullest of a Concat) − use of the output", "pipeline_ops"),
    ("never_rests", "bool", "the queue before it is full and the one behind it empty: it delivers what it can, however "
     "busy its workers are", "starvation begins at it, and rises by nine tenths and more", "pipeline_ops"),
    ("output_used_share", "ratio", "mean fill of its output queue", "", "pipeline_ops"),
    ("output_empty_share", "ratio", "how often its output queue was empty", "", "pipeline_ops"),
    ("input_used_share", "ratio", "mean fill of the queue it reads", "", "pipeline_ops"),
    ("input_empty_share", "ratio", "how often the queue it reads was empty", "", "pipeline_ops"),
    ("queue_samples", "count", "samples of its output queue", "", "pipeline_ops"),
    ("queue_capacity", "count", "rows its output queue holds (prefetch_size)", "", "pipeline_ops"),
    ("cpu_cores", "number", "cores its threads use; Python threads of a source are not in it", "", "pipeline_cpu"),
    ("cpu_per_worker", "percent_of_core", "processor use per worker", "", "pipeline_cpu"),
    ("cpu_share", "ratio", "part of its work that is processor time; the rest waits (I/O, lock, processor)",
     "cores × wall ÷ Σ own work", "pipeline_cpu"),
    ("host_share", "ratio", "part of the host's processors it uses", "", "pipeline_cpu"),
    ("wait_share", "ratio", "data.starved_share of its ranks", "", _BATCH),
    ("wait_us", "us", "data.starved_us of its ranks", "", _BATCH),
    ("step_us", "us", "mean step of its ranks", "", _BATCH),
    ("disturbance_share", "ratio", "data.disturbance_share of its ranks", "", "batches"),
    ("first_wait_us", "us", "data.first_wait_us of its ranks", "", "batches"),
    ("batches", "count", "batches of its ranks", "", _BATCH),
    ("gil_wait_us", "us", "data.gil_wait_us, for an operation that runs Python", "", _WORK),
    ("workers_needed", "count", "workers with which it no longer limits the step; absent where the step's own time was "
     "not recorded", "work ÷ next limit, rounded up",
     _WORK),
    ("workers_proposed", "count", "the same, no more than the host has processors, no fewer than now; no more than "
     "twice as many where the step's own time was not recorded", "", _WORK),
    ("workers_trial", "count", "twice the workers of now, no more than the host has processors: where no time says "
     "how many are needed", "", "pipeline_ops"),
    ("processors_short", "bool", "with more workers the processors would limit the step before half of what this "
     "operation holds up is gained", "", "pipeline_cpu"),
    ("workers_capped", "bool", "more would be needed than the host has processors", "", _WORK),
    ("step_more_workers_us", "us", "the step with them", "largest remaining limit", _WORK),
    ("beside", "text", "other operations that need more workers as well, and how many",
     "busy for nine tenths of this one's time and more, or leaving less than half of what could be gained", _WORK),
    ("beyond_processors", "bool", "the workers proposed are more than the host has processors: this work mostly sleeps",
     "", _WORK),
    ("lock_wait_share", "ratio", "time for which threads wait for the interpreter lock per batch, against the step; "
     "only where it is fought for", "AcquireGIL ÷ wall clock", "dataset_stages"),
    ("saving_more_workers_us", "us", "what they save", "modelled step now − then", _WORK),
    ("limit_more_workers", "text", "what limits the step then", "", _WORK),
    ("processes_proposed", "count", "worker processes, no more than the host has processors", "", _WORK),
    ("saving_processes_us", "us", "what worker processes instead of threads save", "", _WORK),
    ("limit_processes", "text", "what limits the step with them", "", _WORK),
    ("saving_removed_us", "us", "what would be saved if the operation took no time", "", _WORK),
    ("limit_removed", "text", "what limits the step then", "", _WORK),
    ("parallel_source_workers", "count", "workers of a source that would serve in parallel", "", _WORK),
    ("saving_parallel_source_us", "us", "what is saved if the configured workers take effect on a source that one "
     "thread iterates so far", "modelled step now − with __next__ ÷ workers", _WORK),
    ("holds_lock", "bool", "it runs Python and more than half of its work is processor time: threads of it stand in "
     "each other's way", "", "pipeline_cpu"),
    ("gil_limit_us", "us", "Python work per step that shares the interpreter lock", "", "pipeline_cpu"),
    ("processor_limit_us", "us", "processor time per step ÷ processors left by others", "", "pipeline_cpu"),
    ("loop_limit_us", "us", "the loop's own part of the step", "", _BATCH),
    ("limited_by", "text", "what the model says limits the step now", "", _WORK),
)  # fmt: skip

KINDS: tuple[FactKind, ...] = (
    *(kind(f"data.{n}", unit, "run rank", text, formula=how, needs=needs) for n, unit, text, how, needs in _DATA),
    *(kind(f"queue.{n}", unit, "queue", text, needs="pipeline_ops|batches|data_queue") for n, unit, text in _QUEUE),
    *(
        kind(f"queue.{q}_{n}", unit, "run pipeline_op", f"{where}: {text}", needs=needs)
        for q, where, needs in (("host", "queue before the loop or the sending thread", "batches"),
                                ("data", "queue on the device that GetNext reads", "data_queue"))
        for n, unit, text in _QUEUE
    ),
    *(
        kind(f"pipeline_op.{n}", unit, "pipeline_op", text, formula=how, needs=needs)
        for n, unit, text, how, needs in _OPERATION
    ),
)  # fmt: skip
