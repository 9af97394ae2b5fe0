"""A rule on facts: evaluation, populations, texts, and the trace of every clause."""
