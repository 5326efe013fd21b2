"""The type of values released by a mechanism, the only type that a synthesizer accepts."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from voxveil.privacy.invariants import condition_text
from voxveil.privacy.loss import Loss
from voxveil.runtime.errors import PrivacyError

__all__ = ["Released", "require_released"]

T = TypeVar("T")
_KEY = object()


class Released(Generic[T]):
    """A value with the privacy loss of releasing it.

    Only mechanisms make one from a private value (:mod:`voxveil.privacy.mechanisms`);
    :meth:`map` post-processes it, which costs nothing.
    """

    __slots__ = ("_loss", "_value")

    def __init__(self, value: T, loss: Loss, *, key: object = None) -> None:
        if key is not _KEY:
            raise PrivacyError("a Released value is made by a privacy mechanism only")
        self._value = value
        self._loss = loss

    @property
    def value(self) -> T:
        """The released value; anyone may see it."""
        return self._value

    @property
    def loss(self) -> Loss:
        """The privacy loss of the release."""
        return self._loss

    def map(self, function: Any) -> Released[Any]:
        """Return ``function(value)`` with the same loss: post-processing is free.

        ``function`` must use nothing private beside the value.
        """
        return Released(function(self._value), self._loss, key=_KEY)

    def __repr__(self) -> str:
        given = condition_text(self._loss.invariants)
        cost = f"epsilon={self._loss.epsilon:g} per {self._loss.unit}{f' {given}' if given else ''}"
        return f"Released({type(self._value).__name__}, {cost})"


def require_released(value: Any, name: str) -> Released[Any]:
    """Return ``value`` if it is a :class:`Released` value, else raise an error at run time.

    Raises:
        PrivacyError: ``value`` is a bare array or tensor.
    """
    if not isinstance(value, Released):
        raise PrivacyError(
            f"{name} must be a Released value (made by a privacy mechanism), got {type(value).__name__}"
        )
    return value


def seal(value: T, loss: Loss) -> Released[T]:
    """Create a Released value; for mechanisms only (not exported)."""
    return Released(value, loss, key=_KEY)
