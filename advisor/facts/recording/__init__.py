"""What kind of recording this is, and how far its witnesses agree."""
