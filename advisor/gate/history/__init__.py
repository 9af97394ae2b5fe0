"""Baselines: what is kept of earlier runs, and which of them may be compared with these."""
