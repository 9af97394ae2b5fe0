"""Expressions and conditions: reading them, their units, their scopes."""
