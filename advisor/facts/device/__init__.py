"""The device over time: kernels, memory, speed."""
