"""May this go in: samples, baselines, statistics, policy, the decision."""
