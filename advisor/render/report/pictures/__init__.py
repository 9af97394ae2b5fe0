"""Pictures as SVG: they need no script, follow the page's colours, and print."""
