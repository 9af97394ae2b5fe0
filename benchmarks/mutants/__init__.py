"""Damaged, odd and hostile profiles: generated from intact ones, run, and judged against them (`mutations.py`)."""
