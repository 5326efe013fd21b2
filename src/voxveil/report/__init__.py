"""The report: one table, two figures and one page that needs nothing else.

:mod:`voxveil.report.results` reads what the evaluate stage left, :mod:`voxveil.report.table` is the
table of the terminal, :mod:`voxveil.report.page` the HTML page. Everything is a pure function of
the summaries; only :mod:`voxveil.report.figures` needs matplotlib.
"""
