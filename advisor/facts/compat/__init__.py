"""Facts as MindSpore Insight defines them."""
