"""One module per stage: load, call the library, write, log.

:mod:`voxveil.stages.registry` lists them; :mod:`voxveil.stages.run` runs one.
"""
