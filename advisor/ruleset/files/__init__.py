"""Rule files and packs: schema, loading, building."""
