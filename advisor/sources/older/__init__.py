"""Files of MindSpore 1.x and 2.0 to 2.2."""
