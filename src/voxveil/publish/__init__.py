"""Finished results in MLflow: :mod:`voxveil.publish.plan` says what, :mod:`voxveil.publish.send` sends.

Everything is a projection of the evaluate and report outputs and can be made from them again.
"""
