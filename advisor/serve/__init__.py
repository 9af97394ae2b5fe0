"""Saved reports of many runs in a browser."""
