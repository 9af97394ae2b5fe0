"""Files of every profiler and version, read into one set of tables."""
