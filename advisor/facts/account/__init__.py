"""Where the step goes, and what its device could do in that time."""
