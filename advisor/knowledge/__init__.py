"""What holds whether or not a rule uses it: statements, remedies, verdicts, words for users."""
