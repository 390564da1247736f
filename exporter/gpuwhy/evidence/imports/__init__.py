"""Logs that people already have, as observations on one axis, diagnosed as far as they reach."""
