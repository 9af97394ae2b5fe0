"""Stages of a pipeline: what each was given to do, and what one does again that the others do once."""
