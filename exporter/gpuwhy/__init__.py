"""gpuwhy says why a training job's GPUs are not busy with it."""

__version__ = "0.1.0"
