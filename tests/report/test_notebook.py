"""Display of a result in notebooks and as a data frame."""

import sys
from html.parser import HTMLParser

import pytest

import detap
from detap import UsageError
from detap.evaluation.detection import Result, evaluate
from detap.tables.detection import Detections, GroundTruth


def result(name: str = "cat") -> Result:
    """Return the result of one perfectly detected class and one without ground truth."""
    box = [[0.0, 0.0, 10.0, 10.0]]
    truth = GroundTruth.from_arrays(image=[1], boxes=box, label=[name])
    detections = Detections.from_arrays(
        image=[1, 1], boxes=box * 2, label=[name, "dog"], score=[0.9, 0.5]
    )
    with pytest.warns(detap.DetapWarning):
        return evaluate(truth, detections, "voc2012")


class Seen(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.elements.add(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_notebook_shows_the_primary_metric_and_classes() -> None:
    seen = Seen(result()._repr_html_())
    assert "mAP 1.0000" in seen.words
    assert {"cat", "dog", "\N{EN DASH}"} <= {*seen.words}
    assert any(word.startswith("protocol:voc2012|detap:") for word in seen.words)


def test_no_name_is_markup() -> None:
    name = "<script>alert(1)</script>\x1b[31m&"
    text = result(name)._repr_html_()
    assert Seen(text).elements == {
        *("div", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td")
    }
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m&amp;" in text


def test_to_dict_equals_the_json_report() -> None:
    data = result().to_dict()
    assert data["summary"] == {"mAP": 1.0}
    assert [row["AP"] for row in data["classes"]] == [1.0, None]
    assert data["schema_version"] == 2


def test_a_data_frame_has_a_row_per_class() -> None:
    pytest.importorskip("pandas")
    frame = result().to_dataframe()
    assert list(frame["name"]) == ["cat", "dog"]
    assert frame["AP"].isna().tolist() == [False, True]
    assert frame["false_positives"].tolist() == [0, 1]


def test_without_pandas_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="needs pandas: pip install pandas"):
        result().to_dataframe()
