"""One line in a training script: profile a few steps and say at once what to change.

`advisor.callbacks.mindspore` and `advisor.callbacks.pytorch`; neither imports its framework before it is used.
"""
