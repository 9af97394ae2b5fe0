"""YAML with places: documents that know the line of every key, and faults that point there."""
