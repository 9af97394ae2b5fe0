"""From matches to a report: findings, root causes, savings, the headline, whether all is well."""
