"""Collective operations of a rank: exchanges, transfers, exposure, partition of the model."""
