"""May a newly trained system take the place of the one in use? A decision with its reasons.

:mod:`evidence` reads what was measured, :mod:`losses` compares two systems on the same trials,
:mod:`decision` decides, and does nothing else.
"""
