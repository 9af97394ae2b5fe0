"""Judging runs against their history: measures, budgets, findings, statistics, waivers."""
