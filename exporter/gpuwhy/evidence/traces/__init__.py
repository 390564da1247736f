"""Event-level evidence: a profiler's trace, read and told in the vocabulary of the ledger."""
