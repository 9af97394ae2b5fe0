"""The command line: parses, calls, renders, exits."""
