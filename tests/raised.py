"""The errors that tests look into."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

Error = TypeVar("Error", bound=BaseException)


def raised(
    kind: type[Error], call: Callable[..., object], /, *arguments: Any, **options: Any
) -> Error:
    """Return the error of this kind that a call raises."""
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    return caught.value
