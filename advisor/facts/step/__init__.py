"""Steps: their times and parts, the gap before them, how they were recorded."""
