"""The commands of ``gpuwhy``, one module each: ``run(arguments, settings) -> exit status``."""
