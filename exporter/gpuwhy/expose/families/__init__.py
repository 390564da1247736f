"""The metric families: one file each, with its metrics and how their values are found."""
