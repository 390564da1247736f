"""The checks of ``gpuwhy doctor``, by topic: each a function of a host, in one list a module."""
