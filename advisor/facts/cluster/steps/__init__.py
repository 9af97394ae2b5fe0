"""Ranks step by step: who was last in each, which steps are slow, and who is late in some of them only."""
