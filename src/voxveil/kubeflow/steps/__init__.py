"""Steps of cluster pipelines beside the stages: fetching data, gating, registering.

Each is a module with ``run(call)``; :mod:`registry` lists them, :mod:`running` runs one as a launcher asks.
"""
