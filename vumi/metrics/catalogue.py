"""The definitions of all metrics of one machine. `docs/monitoring.md` lists them."""

from __future__ import annotations

from vumi.metrics.families import Kind, Metric

REQUESTS = Metric(
    "vumi_http_requests_total",
    Kind.COUNTER,
    "Requests that were answered.",
    ("method", "route", "status"),
)
REQUEST_SECONDS = Metric(
    "vumi_http_request_duration_seconds",
    Kind.HISTOGRAM,
    "Time from the head of a request to its answer.",
    ("route",),
)
LIMIT_REFUSALS = Metric(
    "vumi_limit_refusals_total",
    Kind.COUNTER,
    "Actions that a limit per client address refused.",
    ("limit",),
)
COMMIT_SECONDS = Metric(
    "vumi_commit_duration_seconds",
    Kind.HISTOGRAM,
    "Time of a common commit of requests, with the wait for its turn.",
)
COMMIT_REQUESTS = Metric(
    "vumi_commit_requests", Kind.HISTOGRAM, "Requests that shared a common commit."
)

VIEWS_TAKEN = Metric("vumi_views_taken_total", Kind.COUNTER, "Views that were taken.")
VIEWS_STORED = Metric(
    "vumi_views_stored_total", Kind.COUNTER, "Views that were stored, or counted at once."
)
QUEUE_REFUSALS = Metric(
    "vumi_queue_refusals_total",
    Kind.COUNTER,
    "Views that the queue refused. They are stored without it, unless the table refuses them too.",
)
VIEWS_WAITING = Metric(
    "vumi_views_waiting_total",
    Kind.COUNTER,
    "Deliveries of views that were neither young nor old, and are delivered again.",
)
VIEWS_FOLDED = Metric(
    "vumi_views_folded_total", Kind.COUNTER, "Views that folds counted.", ("cause",)
)
FOLDS_POSTPONED = Metric(
    "vumi_folds_postponed_total", Kind.COUNTER, "Folds whose markers were put again."
)
FOLD_DELAY = Metric(
    "vumi_fold_delay_seconds",
    Kind.HISTOGRAM,
    "Age of the oldest removed marker in each batch of folds.",
)
FOLD_LAG = Metric(
    "vumi_fold_lag_seconds",
    Kind.GAUGE,
    "Age of the oldest marker that is due and not folded; 0 if there is none.",
)

EVENTS = Metric(
    "vumi_events_total", Kind.COUNTER, "Attempts of events by their outcome.", ("outcome",)
)
EVENT_LATENESS = Metric(
    "vumi_event_lateness_seconds",
    Kind.HISTOGRAM,
    "Time between the schedule of an event and its delivery.",
)
EVENTS_SWEPT = Metric(
    "vumi_events_swept_total", Kind.COUNTER, "Events that the sweep queued.", ("due",)
)
WEBHOOKS = Metric(
    "vumi_webhook_attempts_total",
    Kind.COUNTER,
    "Attempts to post an event to a URL by their outcome.",
    ("outcome",),
)

ENTRIES_ARCHIVED = Metric(
    "vumi_entries_archived_total", Kind.COUNTER, "Journal entries written to the archive."
)
ARCHIVE_LAG = Metric(
    "vumi_archive_lag_seconds",
    Kind.HISTOGRAM,
    "Age of the oldest entry in each archived object since its removal.",
)
MALFORMED = Metric("vumi_malformed_messages_total", Kind.COUNTER, "Malformed messages and changes.")
LOG_LINES = Metric(
    "vumi_log_lines_total", Kind.COUNTER, "Lines of the log that report problems.", ("level",)
)
LOG_EVENTS = Metric(
    "vumi_log_events_total",
    Kind.COUNTER,
    "Lines of the log that report problems, by event.",
    ("event", "level"),
)

QUEUE_MESSAGES = Metric(
    "vumi_queue_messages",
    Kind.GAUGE,
    "Messages that wait or are being handled.",
    ("queue",),
)
QUEUE_AGE = Metric(
    "vumi_queue_oldest_message_age_seconds",
    Kind.GAUGE,
    "Age of the oldest message since it was sent; 0 without a message.",
    ("queue",),
)
QUEUE_OVERDUE = Metric(
    "vumi_queue_overdue_seconds",
    Kind.GAUGE,
    "Time for which a message could have been received; 0 without such a message.",
    ("queue",),
)
DEAD_LETTERS = Metric(
    "vumi_dead_letters", Kind.GAUGE, "Messages that failed too often.", ("queue",)
)

STORAGE_UP = Metric(
    "vumi_storage_up", Kind.GAUGE, "1 if the file can be read and is not corrupt, else 0."
)
FILE_BYTES = Metric("vumi_file_size_bytes", Kind.GAUGE, "Size of the file.")
WAL_BYTES = Metric("vumi_wal_size_bytes", Kind.GAUGE, "Size of the write-ahead log of the file.")
FREE_BYTES = Metric(
    "vumi_disk_free_bytes", Kind.GAUGE, "Free space on the disk of the file for this user."
)

BUILD = Metric(
    "vumi_build_info",
    Kind.GAUGE,
    "1, with the versions of vu-mi, Python and SQLite as labels.",
    ("version", "python", "sqlite"),
)
START = Metric(
    "process_start_time_seconds", Kind.GAUGE, "Time of the start of the process, since 1970."
)
CPU = Metric("process_cpu_seconds_total", Kind.COUNTER, "Processor time of the process.")
MEMORY = Metric("process_resident_memory_bytes", Kind.GAUGE, "Resident memory of the process.")
OPEN_FILES = Metric("process_open_fds", Kind.GAUGE, "Open file descriptors of the process.")
MAX_FILES = Metric("process_max_fds", Kind.GAUGE, "Maximum number of open file descriptors.")
