"""Names of the jobs, for whoever must not import torch (gpuwhy would take it for a job as well)."""

from __future__ import annotations

STORY = ("story_1_data", "story_2_launch", "story_3_graph")
PLANTED = (*STORY, "sync_bound", "copy_bound")
