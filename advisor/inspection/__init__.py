"""`advisor doctor` and `advisor explain`: what was recognised, and why a rule fired or not."""
