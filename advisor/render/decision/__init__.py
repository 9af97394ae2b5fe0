"""The gate's decision in every format."""
