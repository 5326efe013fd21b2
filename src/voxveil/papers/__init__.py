"""The tables and figures of three papers, measured here and set beside what was published.

:mod:`voxveil.papers.catalogue` lists the items; each names a module of this package whose ``MAKERS`` has a
function ``make(project, options) -> Result`` for it. :mod:`voxveil.papers.result` is what such a function
returns, :mod:`voxveil.papers.page` how it is shown. Metrics and plots are those of :mod:`voxveil.metrics`.
"""
