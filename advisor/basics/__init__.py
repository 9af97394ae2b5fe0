"""Units, intervals, files, resources and errors: what every room uses and what knows nothing of profiles."""
