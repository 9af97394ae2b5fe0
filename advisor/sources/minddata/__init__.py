"""Files of MindSpore's data pipeline."""
