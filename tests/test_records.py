"""Records behave as the frozen dataclasses they replace."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest

from detap.records import Record, Value


class Point(Value):
    x: int
    y: int = 2
    label: str = field(default="", compare=False)


@dataclass(frozen=True)
class PlainPoint:
    x: int
    y: int = 2
    label: str = field(default="", compare=False)


class Shape(Record, kw_only=True):
    kind: ClassVar[str] = "shape"
    sides: int = 3
    tags: list[str] = field(default_factory=list)


class Solid(Shape, kw_only=True):
    height: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "height", self.height * 2)


CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((1,), {}),
    ((1, 5), {}),
    ((1,), {"label": "a"}),
    ((1, 5, "a"), {}),
    ((), {"y": 1, "x": 0}),
)


@pytest.mark.parametrize(("given", "named"), CALLS)
def test_arguments_are_assigned_as_by_a_dataclass(
    given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    one, other = Point(*given, **named), PlainPoint(*given, **named)
    assert vars(one) == vars(other)
    assert repr(one) == repr(other).removeprefix("Plain")
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        ((), {}, "missing "),
        ((), {"y": 1}, "missing "),
        ((1, 2, "", 4), {}, "takes "),
        ((1,), {"z": 1}, "got an unexpected keyword argument 'z'"),
        ((1,), {"x": 1}, "got multiple values for argument 'x'"),
    ],
)
def test_wrong_arguments_are_rejected_as_by_a_dataclass(
    given: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=rf"PlainPoint\.__init__\(\) {message}"):
        PlainPoint(*given, **named)
    with pytest.raises(TypeError, match=rf"^Point\.__init__\(\) {message}"):
        Point(*given, **named)


def test_equality_uses_the_compared_fields() -> None:
    assert Point(1, label="a") == Point(1, label="b")
    assert hash(Point(1, label="a")) == hash(Point(1, label="b"))
    assert Point(1) != Point(2)
    assert Point(1) != PlainPoint(1)


def test_identity_records_are_equal_only_to_themselves() -> None:
    one = Shape()
    assert one == one  # noqa: PLR0124
    assert one != Shape()
    assert len({one, Shape()}) == 2


def test_nothing_can_be_assigned_or_deleted() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert point.x == 1


def test_keyword_only_arguments() -> None:
    with pytest.raises(TypeError, match="takes 0 positional arguments, not 1"):
        Shape(4)  # type: ignore[call-arg]


def test_fields_are_inherited_and_completed() -> None:
    solid = Solid(height=1.5)
    assert (solid.sides, solid.tags, solid.height) == (3, [], 3.0)
    assert [entry.name for entry in fields(Solid)] == ["sides", "tags", "height"]
    assert Solid(height=1).tags is not solid.tags


def test_they_can_be_replaced_copied_and_pickled() -> None:
    point = Point(1, label="a")
    assert vars(replace(point, y=7)) == {"x": 1, "y": 7, "label": "a"}
    for other in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert vars(other) == vars(point)


@dataclass(frozen=True, kw_only=True)
class PlainShape:
    sides: int = 3
    tags: list[str] = field(default_factory=list)


@pytest.mark.parametrize(("ours", "plain"), [(Point, PlainPoint), (Shape, PlainShape)])
def test_help_shows_the_arguments_of_a_dataclass(ours: type, plain: type) -> None:
    shown = inspect.signature(ours).parameters.values()
    expected = inspect.signature(plain).parameters.values()
    assert [(one.name, one.kind, one.annotation) for one in shown] == [
        (one.name, one.kind, one.annotation) for one in expected
    ]
    assert inspect.signature(Point).parameters["y"].default == 2
    assert inspect.signature(Solid).parameters["height"].default is inspect.Parameter.empty
