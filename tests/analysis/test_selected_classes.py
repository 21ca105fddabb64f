"""Analyses of selected classes, which compare them with all classes."""

from detap.analysis.comparison import KINDS, count_errors
from detap.analysis.confusion import confusion
from detap.analysis.errors import errors
from detap.evaluation.detection import evaluate
from detap.evaluation.results import Result
from tests.cases import Case, Detection, Truth

CAT, DOG = (0, 0, 100, 100), (200, 0, 100, 100)
CASE = Case(
    truths=(Truth(1, 1, CAT), Truth(1, 2, DOG), Truth(2, 2, DOG)),
    dt=(
        Detection(2, 2, DOG, 0.5),
        Detection(1, 1, DOG, 0.9),  # the dog of image 1, as a cat
        Detection(1, 1, CAT, 0.8),
    ),
    images=(1, 2),
    classes=(1, 2),
)


def of_class(name: str) -> Result:
    return evaluate(*CASE.tables(), classes=[name])


def test_confusion_matrix() -> None:
    """The cell of the dog that is detected as a cat belongs to neither class alone."""
    assert confusion(evaluate(*CASE.tables())).matrix.tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    cats, dogs = confusion(of_class("1")), confusion(of_class("2"))
    assert (cats.classes, dogs.classes) == (("1",), ("2",))
    assert cats.matrix.tolist() == dogs.matrix.tolist() == [[1, 0], [0, 0]]
    # Rows of the tables of these classes.
    assert (cats.detection.tolist(), cats.ground_truth.tolist()) == ([1], [0])
    assert (dogs.detection.tolist(), dogs.ground_truth.tolist()) == ([0], [1])


def test_error_counts() -> None:
    """F1 of the cats is largest at .8: 2/3; the .9 on the dog is a classification error."""
    cats, dogs = count_errors(of_class("1")), count_errors(of_class("2"))
    classification, missed = (
        [int(kind == name) for kind in KINDS] for name in ("classification", "missed")
    )
    assert cats.by_class.tolist() == [classification]
    assert cats.by_image.tolist() == [classification, [0] * 5]
    assert dogs.by_class.tolist() == [missed]
    assert dogs.by_image.tolist() == [missed, [0] * 5]
    assert dogs.select_classes([0]).tolist() == [missed, [0] * 5]


def test_score_threshold() -> None:
    """Without the detections below .6, the dog of image 2 is missed."""
    assert confusion(of_class("2"), score=0.6).matrix.tolist() == [[0, 1], [0, 0]]
    assert errors(of_class("2")).of_type("missed")[1] == 0
    assert errors(of_class("2"), score=0.6).of_type("missed")[1] == 1
