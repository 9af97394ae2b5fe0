"""How folders of profilers look: one file a layout."""
