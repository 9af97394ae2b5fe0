"""Large files, read block by block: traces and kernels."""
