"""Reproduction of tables and figures of three papers, compared with the published values.

:mod:`~voxveil.research.papers.catalogue` lists the items. Each item names a module of this package whose
``MAKERS`` holds a function ``make(project, options) -> Result``. ``Result`` is defined in
:mod:`~voxveil.research.papers.result` and rendered by :mod:`~voxveil.research.papers.item_page`. Metrics and
plots come from :mod:`voxveil.metrics`.
"""
