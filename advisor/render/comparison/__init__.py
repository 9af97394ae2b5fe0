"""Two reports side by side."""
