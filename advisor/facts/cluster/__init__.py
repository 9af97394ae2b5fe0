"""Ranks compared with one another: lateness, meetings, stages, links, slow hosts and steps."""
