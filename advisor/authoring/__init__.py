"""For writers of rules: lint, cases, new rules, and what encodes which statement of the documents."""
