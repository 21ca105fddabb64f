"""Invalid rankings: each message has the file, the location and a hint."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.cli import main
from detap.errors import InputError, UsageError
from detap.formats.ranking.runs import read_arrays, read_npz_retrieval, read_run
from detap.formats.ranking.samples import read_npz_samples, read_samples, read_voc
from detap.io.limits import Limits
from detap.io.paths import SourceFile
from detap.tables.ranking import Gallery, Run
from tests.cli.conftest import Run as Command
from tests.formats.exports import write
from tests.raised import raised
from tests.ranking.cases import save

RUN = "q1 Q0 a 1 0.9 x\nq1 Q0 b 2 0.8 x\n"
QRELS = "q1 0 a 1\nq1 0 b 0\n"
PICKLED = pickle.dumps({"q1": {"a": 1}})


def refused(call: Callable[..., object], *arguments: Any, **more: Any) -> str:
    return str(raised(InputError, call, *arguments, **more))


def within(folder: Path, message: str) -> str:
    """Return a message with file names relative to a folder."""
    return message.replace(f"{folder}/", "")


BIG = 2**53


@pytest.mark.parametrize("kind", [np.uint64, np.float64])
def test_labels_of_two_types_stay_distinct(kind: Any, tmp_path: Path) -> None:
    """2^53 and 2^53 + 1 are the same float64 and once were one label: mAP 1.0 instead of 1/3."""
    path = tmp_path / "a.npz"
    labels = {
        "query_labels": np.array([BIG + 1, BIG + 2], np.int64),
        "gallery_labels": np.array([BIG, BIG, BIG + 2], kind),
    }
    save(path, scores=np.array([[3.0, 2.0, 1.0]] * 2), **labels)
    table = read_npz_retrieval(path)
    assert isinstance(table, Gallery)
    relevant = table.query_labels[:, None] == table.gallery_labels
    assert relevant.tolist() == [[False] * 3, [False, False, True]]


@pytest.mark.parametrize(
    "scores",
    [
        np.array([[BIG, BIG + 1]], np.int64),
        np.array([[0, 2**64 - 1]], np.uint64),
        np.array([[0, 2**63 - 1]], np.int64),
        pytest.param(
            np.array([[0, np.longdouble(1) + np.finfo(np.longdouble).eps]]),
            marks=pytest.mark.skipif(
                np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="no wider float here"
            ),
        ),
    ],
)
def test_scores_that_would_tie_by_rounding(scores: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save(path, scores=scores, query_labels=np.array([1]), gallery_labels=np.array([0, 1]))
    message = refused(read_npz_retrieval, path)
    assert "array 'scores', row 0, column 1: is " in message
    assert "which float64 cannot represent" in message
    save(path, scores=scores, labels=np.array([1]))
    assert refused(read_npz_samples, path).count("row 0, column 1") == 1
    # The remedy.
    save(path, scores=scores.astype(float), labels=np.array([1]))
    read_npz_samples(path)


def test_large_exact_scores_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    scores = np.array([[2**60, -(2**63)]], np.int64)
    save(path, scores=scores, query_labels=np.array([1]), gallery_labels=np.array([0, 1]))
    table = read_npz_retrieval(path)
    assert isinstance(table, Gallery)
    assert table.query.tolist() == [[2.0**60, -(2.0**63)]]


BAD_RUNS: dict[str | bytes, str] = {
    "q1 Q0 a 1 nan x\n": "line 1: score 'nan' is not a finite number; use a decimal number",
    f"q1 Q0 a 1 {2**53 + 1} x\n": (
        "line 1: score is 9007199254740993, which float64 rounds to 9007199254740992; use "
        "scores that float64 represents exactly, such as integers below 2^53"
    ),
    json.dumps({"q1": {"a": 2**53 + 1}}): (
        'query "q1", item "a": score is 9007199254740993, which float64 rounds to '
        "9007199254740992; use scores that float64 represents exactly, such as integers below 2^53"
    ),
    "q1 Q0 a 1 +-1234567890123456 x\n": (
        "line 1: score '+-1234567890123456' is not a number; use a decimal number"
    ),
    "q1 Q0 a 1 1e999 x\n": "line 1: score '1e999' is too large for a number; use a decimal number",
    "q1 Q0 a 1 0,5 x\n": (
        "line 1: score '0,5' is not a number (use a decimal point, not a comma); use a "
        "decimal number"
    ),
    "q1 Q0 a 1 0.5\n": "line 1: has 5 columns, expected 6; write `query Q0 item rank score tag`",
    f"{RUN}\nq1 Q0 a 3 0.1 x\n": (
        "line 4: duplicate item 'a' for query 'q1' (also at line 1); rank it once"
    ),
    "q9 Q0 a 1 0.9 x\n": (
        "no query in common with qrels (here: 'q9'; judgments: 'q1'); use a run and "
        "judgments of the same queries"
    ),
    b"\xff\xfeq\0": "is UTF-16 or UTF-32 text, expected UTF-8; save it as UTF-8",
    b"q1 Q0 \xe9 1 0.9 x\n": "byte 6: 0xe9 is not UTF-8; save it as UTF-8",
    "query,score\nq1,0.5\n": (
        "has no column 'item'; it has 'query', 'score'; write a first line query,item,score"
    ),
    "query,item,score\nq1,a,0.5,3\n": (
        "line 2: has 4 columns, expected 3; write as many as the header has"
    ),
    "query,item,score\nq1,,0.5\n": "line 2: empty query or item; write both",
    "query,item,score\nq1,a,x\n": "line 2: score 'x' is not a number; use a decimal number",
    'query,item,score\nq1,"a,0.5\n': (
        "line 2: invalid CSV: unexpected end of data; correct the line"
    ),
    '[{"query": "q1", "item": "a"}]': "record 1: score is missing; use a finite number",
    '[{"query": "q1", "score": 1}]': (
        "record 1: has no query or no item; write each as text or a whole number"
    ),
    # After a byte order mark.
    "\ufeff" + json.dumps([{"query": "q1", "item": "a", "score": n} for n in (1, 0)]): (
        "record 2: duplicate item 'a' for query 'q1' (also at record 1); rank it once"
    ),
    "[3]": 'record 1: is 3; write {"query": ..., "item": ..., "score": ...}',
    '[{"query": "q1", "item": "a", "score": NaN}]': (
        "record 1: score is NaN, expected a finite number"
    ),
    '{"q1": {"a": 1, "a": 2}}': 'duplicate key "a" in one object; keep one of them',
    '{"q1": {"a": "x"}}': 'query "q1", item "a": score is "x", expected a number',
    '{"q1": 3}': ('query "q1": is 3; write {"query": ..., "item": ..., "score": ...}'),
    '{"q1": {"a": 1}': (
        "line 1, column 16: file is truncated: it ends inside a value, after 15 "
        "characters; download or write it again"
    ),
    f'{{"q1": {{"a": 1{"0" * 399}}}}}': (
        f'query "q1", item "a": score is 1{"0" * 59}..., expected a finite number'
    ),
}
BAD_JUDGMENTS: dict[str | bytes, str] = {
    "q1 0 a 1\nq1 0 a 0\n": (
        "line 2: judges item 'a' of query 'q1' as 0; line 1 judges it as 1; keep one of them"
    ),
    "q1 0 a one\n": "line 1: relevance 'one' is not a number; use a decimal number",
    "q1 0 a\n": "line 1: has 3 columns, expected 4; write `query iteration item relevance`",
    "": "no judgments; use the judgments of the run",
    "<html><body>404</body></html>": (
        "looks like an HTML page, expected judgments; use TREC text, CSV or JSON"
    ),
    PICKLED: "looks like a Python pickle, expected judgments; use TREC text, CSV or JSON",
}


@pytest.mark.parametrize("text", BAD_RUNS)
def test_runs(text: str | bytes, tmp_path: Path) -> None:
    files = write(tmp_path / "run", text), write(tmp_path / "qrels", QRELS)
    assert within(tmp_path, refused(read_run, *files)) == f"run: {BAD_RUNS[text]}"


@pytest.mark.parametrize("text", BAD_JUDGMENTS)
def test_judgments(text: str | bytes, tmp_path: Path) -> None:
    files = write(tmp_path / "run", RUN), write(tmp_path / "qrels", text)
    assert within(tmp_path, refused(read_run, *files)) == f"qrels: {BAD_JUDGMENTS[text]}"


def test_invalid_files(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", QRELS)
    assert "none: no such file or directory" in refused(read_run, tmp_path / "none", qrels)
    assert "is a folder, expected a file" in refused(read_run, tmp_path, qrels)
    assert within(tmp_path, refused(read_run, qrels, qrels)) == (
        "qrels: is both the run and its judgments; use two files"
    )


def test_unusual_valid_input_is_noted(tmp_path: Path) -> None:
    run = write(tmp_path / "run", RUN + "q2 Q0 a 1 1 x\nq1 Q0 c 3 0.1 x\n")
    qrels = write(tmp_path / "qrels", QRELS + "q1 0 a 1\nq3 0 a 1\n")
    table = read_run(run, qrels)
    assert [(note.code, note.count) for note in table.notes] == [
        ("repeated-judgment", 1),
        ("unjudged-query", 1),
        ("unjudged-item", 1),
    ]
    empty = read_run(write(tmp_path / "empty", "[]"), qrels)
    assert [note.code for note in empty.notes] == ["repeated-judgment", "empty-run"]
    assert not empty.present.any()


def test_names_are_kept_exactly(tmp_path: Path) -> None:
    run = write(tmp_path / "run", '[{"qid": 7, "doc_id": "007", "sim": 1}]')
    qrels = write(tmp_path / "qrels", "query_id,docno,rel\n7,7,1\n")
    table = read_run(run, qrels)
    assert table.queries == ("7",)
    assert table.grade.tolist() == [0]  # "007" is not "7"
    assert table.files == (SourceFile(str(run), 1), SourceFile(str(qrels), 1))


@pytest.mark.parametrize("qrels", ['[{"query": "q1", "item": "a"}]', "query,item\nq1,a\n"])
def test_the_default_relevance_is_1(qrels: str, tmp_path: Path) -> None:
    table = read_run(write(tmp_path / "run", RUN), write(tmp_path / "qrels", qrels))
    assert table.grade.tolist() == [1, 0]
    assert table.judged.tolist() == [1]


@pytest.mark.parametrize("kind", ["i2", "u8", "U3", "S3"])
def test_names_are_text_or_whole_numbers(kind: str, tmp_path: Path) -> None:
    names = {
        "query_names": np.array(["10"]).astype(kind),
        "gallery_names": np.array(["7", "0"]).astype(kind),
    }
    path = tmp_path / "a.npz"
    save(path, **SCORES, **names)
    table: Any = read_npz_retrieval(path)
    assert (table.queries, table.items) == (("10",), ("7", "0"))
    assert table.files == (SourceFile(str(path), 1),)
    save(path, scores=SCORES["scores"], relevance=np.array([[0, 2]]), **names)
    graded = read_npz_retrieval(path)
    assert isinstance(graded, Run)
    assert graded.queries == ("10",)
    assert graded.name_order.tolist() == [0, 1]  # descending: "7", "0"
    assert graded.files == (SourceFile(str(path), 1),)


CODES = {
    "query_codes": np.array([[1, -1]]),
    "gallery_codes": np.array([[1, 1], [-1, -1]]),
    "query_labels": np.array([0]),
    "gallery_labels": np.array([0, 1]),
}
SCORES = {
    "scores": np.array([[0.5, 0.1]]),
    "query_labels": np.array([0]),
    "gallery_labels": np.array([0, 1]),
}


def codes(**changes: Any) -> dict[str, Any]:
    return CODES | changes


def scores(**changes: Any) -> dict[str, Any]:
    return SCORES | changes


SIGNS = "give -1 and 1, or 0 and 1, or bytes of 8 bits each (uint8)"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            codes(query_codes=None),
            "has neither codes, embeddings nor scores; use one of them; it has gallery_codes, "
            "query_labels, gallery_labels",
        ),
        (
            codes(gallery_codes=None),
            "has no array 'gallery_codes'; it has query_codes, query_labels, gallery_labels",
        ),
        (
            codes(scores=np.zeros((1, 2))),
            "has both codes and scores; use one of them; it has query_codes, gallery_codes, "
            "scores, query_labels, gallery_labels",
        ),
        (
            codes(query_codes=[[0, -1]]),
            "array 'query_codes', row 0, column 0: is 0 (where another code has -1), expected "
            f"-1 or 1; {SIGNS}",
        ),
        (
            codes(gallery_codes=[[1, 1], [-1, 0.5]]),
            f"array 'gallery_codes', row 1, column 1: is 0.5, expected -1 or 1; {SIGNS}",
        ),
        (
            codes(gallery_codes=[["1", "1"]]),
            "array 'gallery_codes': has the type <U1; give -1 and 1, or 0 and 1",
        ),
        (
            codes(query_codes=[[1, -1, 1]]),
            "array 'gallery_codes': has 2 columns, query_codes has 3; give both the same width",
        ),
        (
            codes(query_codes=[1, -1]),
            "array 'query_codes': has the shape (2,); give (rows, columns), at least one each",
        ),
        (
            codes(gallery_labels=[0]),
            "array 'gallery_labels': has the shape (1,), the gallery has 2 rows; give (2,) or "
            "(2, labels)",
        ),
        (
            codes(query_labels=[[1, 0]]),
            "array 'gallery_labels': has the shape (2,), query_labels has (1, 2); give class "
            "numbers on both sides, or 0 and 1 for the same labels on both",
        ),
        (
            codes(query_labels=[0.5]),
            "array 'query_labels': has a class number that is not whole; give whole numbers or "
            "names",
        ),
        (
            codes(query_labels=["cat"]),
            "array 'gallery_labels': has names on one side alone; give names, or numbers, on both",
        ),
        (
            scores(scores=[[np.nan, 1]]),
            "array 'scores', row 0, column 0: is nan, which is not finite; give finite numbers",
        ),
        (scores(scores=[["a", "b"]]), "array 'scores': has the type <U1; give numbers"),
        (
            scores(gallery_labels=[0]),
            "array 'gallery_labels': has the shape (1,), scores has 2 columns; give (2,) or "
            "(2, labels)",
        ),
        (
            scores(relevance=np.zeros((2, 1))),
            "array 'relevance': has the shape (2, 1); give (1, 2)",
        ),
        (
            scores(gallery_names=["a", "a"]),
            "array 'gallery_names': duplicate name 'a'; use distinct names",
        ),
        (scores(query_names=[7, 8]), "array 'query_names': has 2 names; give 1"),
        (scores(gallery_names=["a"]), "array 'gallery_names': has 1 name; give 2"),
        (
            scores(gallery_names=np.zeros((1, 2))),
            "array 'gallery_names': not a column of names; give text or whole numbers, (n,)",
        ),
        (
            scores(query_labels=[[1, 2]], gallery_labels=np.zeros((2, 2))),
            "array 'query_labels', row 0, column 1: is 2, expected 0 or 1; give 1 for each "
            "label that there is; or class numbers as (n,)",
        ),
        (
            scores(query_labels=[[1]], gallery_labels=np.zeros((2, 1))),
            "array 'query_labels': has one column; give class numbers as (n,)",
        ),
        (
            scores(query_labels=np.zeros((1, 2)), gallery_labels=np.zeros((2, 3))),
            "array 'gallery_labels': has the shape (2, 3), query_labels has (1, 2); give class "
            "numbers on both sides, or 0 and 1 for the same labels on both",
        ),
    ],
)
def test_archives(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    given = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    save(tmp_path / "case.npz", **given)
    refusal = within(tmp_path, refused(read_npz_retrieval, tmp_path / "case.npz"))
    assert refusal == f"case.npz: {message}"


def npy(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def archive(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


class _Evil:
    def __reduce__(self) -> Any:
        raise AssertionError("was unpickled")  # pragma: no cover - it must not be


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **(SCORES | {"query_labels": np.array([{"a": 1}], object)}))
    message = refused(read_npz_retrieval, tmp_path / "a.npz")
    assert "array 'query_labels': cannot be read: Object arrays cannot be loaded" in message
    path = write(tmp_path / "b.npz", pickle.dumps(SCORES))
    assert "looks like a Python pickle, expected an .npz archive" in refused(
        read_npz_retrieval, path
    )


def test_zip_bombs_are_not_expanded(tmp_path: Path) -> None:
    bomb = npy(np.zeros((1, 40_000_000), np.uint8))
    path = archive(tmp_path / "bomb.npz", {"scores.npy": bomb}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    message = refused(read_npz_retrieval, path)
    assert "bomb.npz: expands from " in message
    assert " to 40000128 bytes" in message
    message = refused(read_npz_retrieval, path, limits=Limits(file_bytes=1000))
    assert "is larger than 1000 bytes" in message


def header(text: str) -> bytes:
    body = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (9, 9)}"), "expected 648 bytes"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}"), "malformed"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}"), ""),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (1 << 99,)}"), ""),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"), "negative"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}") + b"x", "more bytes"),
        (header("__import__('os').abort()"), "malformed"),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "Object arrays"),
        (b"\x93NUMPY\x09\x00", "format version"),
        (b"\x93NUMPY", "EOF"),
        (b"", "EOF"),
    ],
)
def test_damaged_arrays(data: bytes, message: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", {"scores.npy": data})
    refusal = refused(read_npz_retrieval, path)
    assert "array 'scores': cannot be read: " in refusal
    assert message in refusal


@pytest.mark.parametrize("kind", ["[('a', '<f8')]", "'<U0'", "'<c16'"])
def test_arrays_of_other_types(kind: str, tmp_path: Path) -> None:
    data = header(f"{{'descr': {kind}, 'fortran_order': False, 'shape': (0,)}}")
    path = archive(tmp_path / "a.npz", {"scores.npy": data})
    message = refused(read_npz_retrieval, path)
    assert "array 'scores': has the type" in message


def test_damaged_archives(tmp_path: Path) -> None:
    whole = archive(tmp_path / "a.npz", {"scores.npy": npy(SCORES["scores"])}).read_bytes()
    cut = write(tmp_path / "cut.npz", whole[:200])
    message = within(tmp_path, refused(read_npz_retrieval, cut))
    assert message.startswith("cut.npz: is a damaged archive: ")
    assert message.endswith("; write it again with numpy.savez")
    flipped = bytearray(whole)
    flipped[150] ^= 255
    assert "is a damaged archive: Bad CRC-32" in refused(
        read_npz_retrieval, write(tmp_path / "bits.npz", bytes(flipped))
    )
    other = archive(tmp_path / "other.npz", {"x.npy": npy(np.zeros(1)), "readme.txt": b""})
    assert within(tmp_path, refused(read_npz_retrieval, other)) == (
        "other.npz: has none of the arrays query_codes, gallery_codes, query_embeddings, "
        "gallery_embeddings, scores, query_labels, gallery_labels, relevance, query_names, "
        "gallery_names; it has x"
    )
    nothing = archive(tmp_path / "nothing.npz", {"readme.txt": b""})
    assert refused(read_npz_retrieval, nothing).endswith("; it has nothing")
    text = write(tmp_path / "text.npz", "hello")
    assert within(tmp_path, refused(read_npz_retrieval, text)) == (
        "text.npz: unknown kind of file, expected an .npz archive; write it with numpy.savez"
    )
    twice = tmp_path / "twice.npz"
    with zipfile.ZipFile(twice, "w") as file:
        file.writestr("scores.npy", npy(np.zeros((1, 1))))
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("scores.npy", npy(np.zeros((1, 1))))
    assert within(tmp_path, refused(read_npz_retrieval, twice)) == (
        "twice.npz: duplicate array 'scores'; keep one of them"
    )


def test_an_encrypted_member(tmp_path: Path) -> None:
    data = bytearray(archive(tmp_path / "a.npz", {"scores.npy": b""}).read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # a flag in the central directory
    path = write(tmp_path / "a.npz", bytes(data))
    assert within(tmp_path, refused(read_npz_retrieval, path)) == (
        "a.npz: is a damaged archive: File 'scores.npy' is encrypted, password required for "
        "extraction; write it again with numpy.savez"
    )


def test_byte_order_and_memory_order_do_not_matter(tmp_path: Path) -> None:
    scores = np.arange(12.0).reshape(3, 4)
    labels = {"query_labels": np.arange(3), "gallery_labels": np.arange(4)}
    for one in (scores, np.asfortranarray(scores), scores.astype(">f8"), scores.astype("<f2")):
        save(tmp_path / "a.npz", scores=one, **labels)
        table: Any = read_npz_retrieval(tmp_path / "a.npz")
        assert table.query.tolist() == scores.tolist()


def test_packed_codes(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).random((6, 16)) < 0.5
    labels = {"query_labels": np.arange(3) % 2, "gallery_labels": np.arange(3) % 2}
    packed = np.packbits(bits, axis=1)
    save(tmp_path / "a.npz", query_codes=packed[:3], gallery_codes=packed[3:], **labels)
    table: Any = read_npz_retrieval(tmp_path / "a.npz")
    assert [note.code for note in table.notes] == ["packed-codes"]
    assert table.query.tolist() == bits[:3].tolist()


def test_separate_arrays(tmp_path: Path) -> None:
    paths = []
    for name, array in CODES.items():
        np.save(tmp_path / f"{name}.npy", array)
        paths.append(tmp_path / f"{name}.npy")
    files: Any = (paths[0], paths[1], paths[2], paths[3])
    table = read_arrays(*files, kind="codes")
    assert table.query.tolist() == [[True, False]]
    assert table.gallery.tolist() == [[True, True], [False, False]]
    assert table.files == tuple(map(SourceFile, map(str, paths), (1, 2, 1, 2)))
    np.save(paths[0], np.array([[3, 1]]))
    message = refused(read_arrays, *files, kind="codes")
    assert f"{paths[0]}: row 0, column 0: is 3, expected -1 or 1" in message
    pickled = write(tmp_path / "x.npy", pickle.dumps(1))
    assert within(tmp_path, refused(read_arrays, pickled, *files[1:])) == (
        "x.npy: looks like a Python pickle, expected an .npy array; write it with numpy.save"
    )
    damaged = write(tmp_path / "y.npy", npy(np.zeros((2, 2)))[:-8])
    message = within(tmp_path, refused(read_arrays, damaged, *files[1:]))
    assert message.startswith("y.npy: cannot be read: Failed to read all data for array. Expected")


BAD_SCORES = {
    "sample,cat\na,nan\n": "line 2: score 'nan' is not a finite number; use a decimal number",
    "sample,cat\na,1\na,2\n": "line 3: duplicate class 'cat' of sample 'a'; keep one of them",
    "sample,cat\nb,1\n": (
        "no sample in common with labels; use scores and labels of the same samples"
    ),
    "sample,cat\na,1\nb,1\n": (
        "sample 'b' has no labels in labels; score the samples that have labels"
    ),
    "cat,dog\n1,2\n": (
        "has the columns 'cat', 'dog', expected 'sample' first; write a first line "
        "`sample,class,score`, or `sample,` and the classes"
    ),
    "sample,cat,cat\na,1,2\n": "duplicate column 'cat'; keep one of them",
    "sample,cat\na,1,2\n": "line 2: has 3 columns, expected 2; write as many as the header has",
    "sample,cat\n,1\n": "line 2: no sample name; add it",
    "sample,cat\n": "no samples; use the scores of the samples",
    "[1]": "is [1]; write {sample: {class: score}}",
    '{"a": 1}': 'sample "a": is 1; write {class: score, ...}',
    '{"a": {"cat": null}}': 'sample "a", class "cat": score is null, expected a number',
    '{"a": {"cat": 1}, "a": {}}': 'duplicate key "a" in one object; keep one of them',
    "<html>": "looks like an HTML page, expected a file of scores; use CSV or JSON",
}


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        *(
            (text, "sample,label\na,cat\n", f"scores: {message}")
            for text, message in BAD_SCORES.items()
        ),
        (
            "sample,cat\na,1\n",
            "sample,label\na,dog\n",
            "labels: label 'dog' is not a class of scores; name labels as the classes of the "
            "scores",
        ),
        (
            "sample,cat\na,1\n",
            "sample,cat\na,2\n",
            "labels: line 2: label '2' is not 0 or 1; use 0 or 1",
        ),
        (
            '{"a": {"cat": 1}}',
            '{"a": [true]}',
            'labels: sample "a": label true is not a name; use text',
        ),
        (
            '{"a": {"cat": 1}',
            '{"a": "cat"}',
            "scores: line 1, column 17: file is truncated: it ends inside a value, after 16 "
            "characters; download or write it again",
        ),
    ],
)
def test_samples(scores: str, labels: str, message: str, tmp_path: Path) -> None:
    files = write(tmp_path / "scores", scores), write(tmp_path / "labels", labels)
    assert within(tmp_path, refused(read_samples, *files)) == message


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"scores": np.zeros((2, 3))}, "has no array 'labels'; it has scores"),
        (
            {"scores": np.zeros(3), "labels": np.zeros(3)},
            "array 'scores': has the shape (3,); give (rows, columns), at least one each",
        ),
        (
            {"scores": np.full((1, 2), np.nan), "labels": [0]},
            "array 'scores', row 0, column 0: is nan, which is not finite; give finite numbers",
        ),
        (
            {"scores": np.zeros((2, 3)), "labels": [0, 3]},
            "array 'labels', row 1: is 3, expected a class from 0 to 2; number classes as the "
            "columns of scores",
        ),
        (
            {"scores": np.zeros((2, 3)), "labels": [0.5, 1]},
            "array 'labels': has a class number that is not whole; give whole numbers or names",
        ),
        (
            {"scores": np.zeros((1, 3)), "labels": [b"cat"]},
            "array 'labels': has the type |S3; give whole numbers, or names as text",
        ),
        (
            {"scores": np.zeros((2, 3)), "labels": [0, 1, 2]},
            "array 'labels': has the shape (3,), scores has (2, 3); give (2,) or (2, 3)",
        ),
        (
            {"scores": np.zeros((1, 2)), "labels": [[0, -1]]},
            "array 'labels', row 0, column 1: is -1, expected 0 or 1; give 1 for each label "
            "that there is; difficult ones go to 'difficult'",
        ),
        (
            {"scores": np.zeros((1, 2)), "labels": [0], "difficult": [[2, 0]]},
            "array 'difficult': has the shape (1, 2); give 0 or 1 for each sample and class, "
            "(1, 2)",
        ),
        (
            {"scores": np.zeros((1, 2)), "labels": ["x"], "class_names": ["a", "b"]},
            "array 'labels', row 0: is 'x', expected a class from 0 to 1; number classes as "
            "the columns of scores",
        ),
        (
            {"scores": np.zeros((1, 2)), "labels": [0], "class_names": ["a"]},
            "array 'class_names': has 1 name; give 2",
        ),
    ],
)
def test_sample_archives(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **{key: np.array(value) for key, value in arrays.items()})
    refusal = within(tmp_path, refused(read_npz_samples, tmp_path / "a.npz"))
    assert refusal == f"a.npz: {message}"


def voc(folder: Path, sets: dict[str, str], results: dict[str, str]) -> tuple[Path, Path]:
    for location, files in (("sets", sets), ("results", results)):
        (folder / location).mkdir()
        for name, text in files.items():
            (folder / location / name).write_text(text)
    return folder / "sets", folder / "results"


ONE, SCORED = {"cat_t.txt": "1 1\n"}, {"_cls_t_cat.txt": "1 1\n"}


@pytest.mark.parametrize(
    ("sets", "results", "message"),
    [
        (
            {"cat_t.txt": "1 2\n"},
            SCORED,
            "sets: cat_t.txt: line 1: label 2 of image '1' is not -1, 0 or 1; use -1, 0 or 1",
        ),
        (
            {"cat_t.txt": "1 1\n1 1\n"},
            SCORED,
            "sets: cat_t.txt: line 2: duplicate image '1'; keep one line",
        ),
        (
            ONE,
            {"_cls_t_cat.txt": "2 1\n"},
            "results: _cls_t_cat.txt: line 1: image '2' is not in the image set of cat; score the "
            "images of the set",
        ),
        (
            ONE,
            {"_cls_t_cat.txt": "1 x\n"},
            "results: _cls_t_cat.txt: line 1: score 'x' is not a number; use a decimal number",
        ),
        (
            ONE,
            {"_cls_t_cat.txt": "1\n"},
            "results: _cls_t_cat.txt: line 1: has 1 column, expected 2; write `image score`",
        ),
        (
            ONE,
            {"_cls_t_dog.txt": "1 1\n"},
            "results: no results of these classes; it has _cls_t_dog.txt; name them "
            "_cls_<set>_<class>.txt",
        ),
        ({"cat_t.txt": ""}, SCORED, "sets: no images; use image sets with lines `image label`"),
        (
            {"readme": ""},
            SCORED,
            "sets: no file <class>_<set>.txt; give ImageSets/Main, whose files list each "
            "class's images",
        ),
        (
            ONE,
            {"a_cls_t_cat.txt": "1 1\n", "b_cls_t_cat.txt": "1 1\n"},
            "results: duplicate files of class 'cat': a_cls_t_cat.txt and b_cls_t_cat.txt; "
            "keep one of them",
        ),
    ],
)
def test_voc(sets: dict[str, str], results: dict[str, str], message: str, tmp_path: Path) -> None:
    assert within(tmp_path, refused(read_voc, *voc(tmp_path, sets, results))) == message


def test_ambiguous_voc_sets_are_rejected(tmp_path: Path) -> None:
    folders = voc(
        tmp_path, {"a_val.txt": "1 1\n", "a_test.txt": "1 1\n"}, {"_cls_x_a.txt": "1 1\n"}
    )
    with pytest.raises(UsageError, match="has the sets test, val; use --image-set"):
        read_voc(*folders)
    assert read_voc(*folders, image_set="val").classes == ("a",)


def test_a_voc_class_without_a_file_has_ap_zero(tmp_path: Path) -> None:
    from detap.ranking import classification

    sets = {"cat_t.txt": "1 1\n2 -1\n", "dog_t.txt": "1 -1\n2 1\n3 1\n"}
    table = read_voc(*voc(tmp_path, sets, {"c1_cls_t_cat.txt": "1 0.5\n2 0.4\n"}))
    assert [(note.code, note.count) for note in table.notes] == [("class-without-scores", 1)]
    assert table.notes[0].message.endswith("have AP 0: 'dog'")
    result = classification.evaluate(table)
    assert result.average_precision.tolist() == [1, 0]
    assert result.positives.tolist() == [1, 2]
    assert result.negatives.tolist() == [1, 1]  # image 3 is not in the set of cats


@pytest.mark.parametrize(
    ("kind", "words", "message"),
    [
        ("retrieval", "", "no input was given: use --npz FILE; or --run and --qrels"),
        ("retrieval", "--run a", "--run requires --qrels"),
        ("retrieval", "--run - --qrels -", "only one of --run and --qrels can come from stdin"),
        ("retrieval", "--npz a --run b --qrels c", "--npz and --run were given"),
        ("retrieval", "--queries a", "--queries requires --gallery"),
        ("retrieval", "--npz a --codes", "--codes requires --queries"),
        ("retrieval", "--npz a --k 0", "'--k': 0 is not an integer from 1 to 1000000000"),
        ("retrieval", "--npz a --k 1.5", "'1.5' is not a whole number"),
        ("retrieval", "--npz a --relevant-from 0", "'--relevant-from': 0.0 is outside"),
        ("retrieval", "--npz a --protocol hash", "unknown protocol 'hash'; did you mean hashing"),
        ("retrieval", "--npz a --measures mAp", "unknown metric 'mAp'; did you mean mAP"),
        ("retrieval", "--npz a --curves x.txt", "use a file name that ends in .json or .csv"),
        ("retrieval", "--npz a --confidence 0.9", "--confidence requires --baseline-ranking"),
        ("retrieval", "--npz a -o a", "unknown extension"),
        ("retrieval", "--npz none.npz", "none.npz: no such file or directory"),
        ("classification", "", "use --npz FILE, or --scores and --labels"),
        ("classification", "--scores a", "--scores requires --labels"),
        ("classification", "--npz a --image-set x", "--image-set requires VOC folders"),
        ("classification", "--scores a --labels b --image-set x", "--labels is not a folder"),
    ],
)
def test_the_command_rejects_invalid_input(
    kind: str, words: str, message: str, command: Command
) -> None:
    said = command("rank", kind, *words.split()).refused()
    assert message in said
    assert "Traceback" not in said


def test_json_of_the_report_is_strict(tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **(SCORES | {"query_labels": np.array([9])}))
    out = tmp_path / "out.json"
    given = ["--npz", str(tmp_path / "a.npz"), "--no-relevant", "exclude", "-o", str(out), "-q"]
    assert main(["rank", "retrieval", *given]) == 0
    report = json.loads(out.read_text(), parse_constant=pytest.fail)
    assert report["summary"]["mAP"] is None
    assert report["queries"][0]["AP"] is None
