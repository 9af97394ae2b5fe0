"""Ranks and the hosts they run on: those of one host that are late together, groups that span several."""
