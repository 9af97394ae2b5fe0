"""Collecting the right evidence: what would decide most, its configuration, checks of an existing one."""

from advisor.collect.check import Fault
from advisor.collect.configurations import check_file, check_text
from advisor.collect.plan import next_collection, next_evidence
from advisor.collect.write import FORMS, write_configuration

__all__ = ["FORMS", "Fault", "check_file", "check_text", "next_collection", "next_evidence", "write_configuration"]
