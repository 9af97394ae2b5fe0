"""Rules on facts: which rules match, and what follows from their matches."""
