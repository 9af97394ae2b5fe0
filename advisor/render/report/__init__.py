"""The report: text, HTML, Markdown, SARIF, JUnit, GitHub, and its figures."""
