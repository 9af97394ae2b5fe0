"""What is measured in a profile: families of facts by theme, their catalogue, saved facts."""
