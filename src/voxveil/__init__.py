"""voxveil: speech anonymization with differential privacy, attacked and measured.

Importing the package does nothing but define the version; every heavy library
(torch, speechbrain, mlflow, kfp, matplotlib) is imported where it is used.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
