"""The data pipeline: operations, queues, loading, GetNext, the host's processors."""
