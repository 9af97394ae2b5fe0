"""Matching and chaining: durable-rules, and the built-in engine of the same contract."""
