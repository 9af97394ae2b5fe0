"""The host's side of a step: launches, API calls, the timeline."""
