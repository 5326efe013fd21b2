"""The report: a table, two figures and a self-contained HTML page.

:mod:`~voxveil.results.report.results` reads the outputs of the evaluate stage.
:mod:`~voxveil.results.report.terminal` renders the table of the terminal, :mod:`~voxveil.results.report.page`
the HTML page. Everything is a pure function of the summaries. Only :mod:`~voxveil.results.report.figures`
needs matplotlib.
"""
