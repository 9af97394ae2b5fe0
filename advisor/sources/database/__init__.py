"""SQLite files of profilers and analysis tools."""
