"""Behind the end of backward that the older step trace marks: its collectives, and what else runs there."""
