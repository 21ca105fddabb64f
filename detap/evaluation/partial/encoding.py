"""Partials as bytes: a heading in JSON, columns of little-endian numbers, a checksum.

::

    8 bytes   the magic, the last of which is the version of the format
    8 bytes   how long the heading is
    heading   JSON, padded with spaces to a multiple of 8
    columns   as the heading lists them, each padded with zeros likewise
    32 bytes  blake2b of all that stands before

The bytes depend on what is in a partial alone: not on the shards that it was merged from, on their
order, or on threads.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from detap.checks.boxes import COUNTS, IMAGES, BoxEvidence
from detap.checks.inputs import BoxCounts
from detap.core.match_table import MatchFlags, empty_bits
from detap.core.packing import narrow
from detap.errors import DetapError, InputError, Note, Problem, UsageError
from detap.evaluation.partial.blocks import Block, BlockSlice, ClassColumns, GroundTruthKinds
from detap.evaluation.partial.provenance import GroundTruthDigest, Input
from detap.evaluation.partial.tie_columns import COLUMNS, Ties
from detap.evaluation.run import match_params
from detap.io.json_text import check_text
from detap.io.limits import Limits
from detap.protocols import Protocol
from detap.tables.columns import MOST_ROWS, Name
from detap.tables.detection import GROUPS, SAMPLED_IMAGES, CategorySample

if TYPE_CHECKING:
    from detap.evaluation.partial.partial import Partial

Columns = dict[str, NDArray[Any]]

VERSION = 2
_MAGIC = b"detapPT"
_CHECKSUM = 32
_SOME = 1 << 22
_ANEW = "make it anew"
_NUMBERS = ("<u1", "<u2", "<u4", "<u8")


# --- written


class _Column(NamedTuple):
    """A column that is about to be written.

    Attributes
    ----------
    kind : str
        The type of its numbers, little-endian.
    length : int
        How many it has.
    parts : iterable of (n,) arrays
        Made as they are taken; together `length` numbers, which `kind` can hold.
    """

    kind: str
    length: int
    parts: Iterable[NDArray[Any]]

    @classmethod
    def whole(cls, column: NDArray[Any]) -> "_Column":
        return cls(_kind(column), len(column), (column,))

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield its bytes, up to a multiple of 8."""
        size = 0
        for part in self.parts:
            piece = np.ascontiguousarray(part, self.kind)
            size += piece.nbytes
            yield piece.view(np.uint8).data
        yield bytes(-size % 8)


def encode(partial: "Partial") -> Iterator[bytes | memoryview]:
    """Yield a partial as pieces of bytes, each made when the one before has been written."""
    taken = blake2b(digest_size=_CHECKSUM)
    for piece in _pieces(partial):
        taken.update(piece)
        yield piece
    yield taken.digest()


def _pieces(partial: "Partial") -> Iterator[bytes | memoryview]:
    """Yield all but the checksum."""
    columns = _columns(partial)
    protocol = partial.protocol
    heading = _json(
        {
            "boxes": list(partial.counts),
            "categories": partial.categories,
            "classes": [*zip(partial.class_ids, partial.class_names, strict=True)],
            "columns": [[name, column.kind, column.length] for name, column in columns.items()],
            "due": partial.due,
            "ground_truth": partial.ground_truth,
            "groups": [[n, partial.groups[n]] for n in partial.class_ids if n in partial.groups],
            "images": partial.images,
            "inputs": [entry if entry.reading else entry[:-1] for entry in partial.inputs],
            "known": partial.known,
            "lowest_score": partial.lowest_score,
            "notes": [_note(note) for note in partial.own_notes],
            "protocol": protocol.as_dict(),
            "shared_notes": [_note(note) for note in partial.shared_notes],
            "sources": partial.sources,
            "tie_range": partial.has_ties,
            **({} if partial.unselected is None else {"unselected": partial.unselected}),
        }
    )
    heading += b" " * (-len(heading) % 8)
    yield _MAGIC + bytes([VERSION]) + len(heading).to_bytes(8, "little")
    yield heading
    for column in columns.values():
        yield from column.pieces()


def _kind(column: NDArray[Any]) -> str:
    return f"<{column.dtype.kind}{column.dtype.itemsize}"


def _json(record: Any) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def _note(note: Note) -> list[Any]:
    return [note.code, note.message, note.count, note.severity]


def _columns(partial: "Partial") -> dict[str, _Column]:
    """Return the columns by name, in the order in which they are written.

    Those of rows are put together a few classes at a time, and each by itself: together they are as
    large as the partial.
    """
    tables = partial.tallied
    match_flags, match_code = _used(
        tables.match_flags, tables.match_code, [piece.block.detections for piece in partial.pieces]
    )
    kinds, kind = _used(
        tables.kinds, tables.kind_code, [piece.block.truths for piece in partial.pieces]
    )
    counts, images = partial.sizes, len(partial.images)
    found, truths = (int(count) for count in counts.sum(axis=1))
    coverage = partial.protocol.matching == "by-iou"
    image = _unsigned(images - 1)
    ties = Ties.of(partial.tie_groups() if partial.has_ties else ())
    small = {
        "position": _narrowed(partial.position),
        "source": _narrowed(partial.source if len(partial.sources) > 1 else partial.source[:0]),
        "proposals": _narrowed(partial.proposals if coverage else partial.proposals[:0]),
        "detections": _narrowed(counts[0]),
        "ground_truths": _narrowed(counts[1]),
        "match_max_dets_index": match_flags.max_dets_index,
        "match_true_positive": match_flags.true_positive.ravel(),
        "match_ignored": match_flags.ignored.ravel(),
        "match_duplicate": match_flags.duplicate.view(np.uint8),
        "kind_positive": kinds.positive.ravel().view(np.uint8),
        "kind_covered": kinds.covered.ravel(),
    }
    of_ties = {
        name: column if name == "tie_score" else _narrowed(column)
        for name, column in ties.columns().items()
    }
    return {
        **{name: _Column.whole(column) for name, column in small.items()},
        "score": _Column("<f8", found, (rows.score for rows in partial.detections_in_order())),
        "image": _Column(
            image, found, (rows.image for rows in partial.detections_in_order(scores=False))
        ),
        "match_code": _Column(
            _kind(match_code),
            found,
            (match_code[rows.code] for rows in partial.detections_in_order(scores=False)),
        ),
        "truth_image": _Column(image, truths, (rows.image for rows in partial.truths_in_order())),
        "truth_kind": _Column(
            _kind(kind), truths, (kind[rows.code] for rows in partial.truths_in_order())
        ),
        **{name: _Column.whole(column) for name, column in of_ties.items()},
        "sample_key": _Column.whole(partial.boxes.key),
        "sample_counts": _Column.whole(_narrowed(partial.boxes.counts.ravel())),
    }


def _used(
    tables: Any, codes: Sequence[NDArray[np.uint32]], sides: Sequence[ClassColumns]
) -> tuple[Any, NDArray[Any]]:
    """Return the tables with the entries that occur alone, and the new number of each."""
    used = np.zeros(tables[0].shape[-1], np.bool_)
    for code, side in zip(codes, sides, strict=True):
        there = np.zeros(len(code), np.bool_)
        for begin in range(0, len(side.code), _SOME):
            there[side.code[begin : begin + _SOME]] = True
        used[code[there]] = True
    number = _narrowed(np.cumsum(used) - 1)
    return tables._make(table.compress(used, axis=-1) for table in tables), number


def _unsigned(most: int) -> str:
    return narrow(max(most, 0))


def _narrowed(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(_unsigned(int(column.max(initial=0))))


# --- read


def decode(data: Any, limits: Limits, name: str) -> dict[str, Any]:
    """Return the fields of a partial from its bytes, each checked.

    Parameters
    ----------
    data : bytes-like
        Not copied where it cannot be written to.
    limits : Limits
        What is accepted at most.
    name : str
        What errors call it.

    Raises
    ------
    InputError
        Where these are no bytes of a partial, or damaged, or beyond the limits.
    UsageError
        Where `data` are no bytes at all.
    """
    return _Reader(_bytes(data), limits, name).fields()


def _bytes(data: Any) -> memoryview:
    try:
        view = memoryview(data).cast("B")
    except TypeError:
        raise UsageError(
            f"a {type(data).__name__} stands where the bytes of a partial are due"
        ) from None
    begin = np.frombuffer(view, np.uint8)
    if view.readonly and not begin.ctypes.data % 8:
        return view
    return memoryview(bytes(view))


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _ascend(position: NDArray[np.int64], most: int) -> bool:
    return not len(position) or bool((np.diff(position) > 0).all() and position[-1] < most)


class _Reader:
    """Reads one partial, and refuses in its name."""

    def __init__(self, data: memoryview, limits: Limits, name: str) -> None:
        self.data, self.limits, self.name = data, limits, name

    def refuse(self, message: str, hint: str = _ANEW) -> NoReturn:
        raise InputError(Problem(self.name, "", message, hint))

    def need(self, condition: bool, what: str) -> None:
        if not condition:
            self.refuse(f"is damaged: {what}")

    def fields(self) -> dict[str, Any]:
        """Return the fields of a Partial."""
        record, begin = self._heading()
        try:
            return self._fields(record, begin)
        except InputError:
            raise
        except (
            DetapError,
            TypeError,
            ValueError,
            KeyError,
            AttributeError,
            OverflowError,
        ) as error:
            self.refuse(f"is damaged: heading: {error}")

    def _heading(self) -> tuple[dict[str, Any], int]:
        """Return the heading and where the columns begin."""
        data = self.data
        if len(data) > self.limits.file_bytes:
            self.refuse(
                f"has {len(data)} bytes, above the limit of {self.limits.file_bytes}",
                "raise the limit, or merge fewer at a time",
            )
        if data[:7] != _MAGIC or len(data) < 16 + _CHECKSUM:
            self.refuse("is no partial, or only the beginning of one", _ANEW)
        if data[7] != VERSION:
            self.refuse(
                f"format version: {data[7]}, where this detap reads {VERSION}",
                "make it again with this version of detap",
            )
        if blake2b(data[:-_CHECKSUM], digest_size=_CHECKSUM).digest() != data[-_CHECKSUM:]:
            self.refuse(
                "is damaged: its checksum is that of other bytes", "make it or copy it anew"
            )
        size = int.from_bytes(data[8:16], "little")
        self.need(size % 8 == 0 and size <= len(data) - 16 - _CHECKSUM, "no heading")
        text = bytes(data[16 : 16 + size]).rstrip(b" ")
        try:
            record = json.loads(text, parse_constant=_refuse_constant)
            check_text(record)
            self.need(isinstance(record, dict) and _json(record) == text, "heading")
        except (ValueError, RecursionError) as error:
            self.refuse(f"is damaged: heading: {error}")
        return record, 16 + size

    def _fields(self, record: dict[str, Any], begin: int) -> dict[str, Any]:
        protocol = Protocol.from_dict(record["protocol"])
        coverage = protocol.matching == "by-iou"
        self.need(protocol.class_agnostic or not coverage, "proposals have no classes")
        images = self._names(record["images"])
        ids = self._names([name for name, _ in record["classes"]])
        texts = tuple(self._text(text) for _, text in record["classes"])
        sources = tuple(self._text(text) for text in record["sources"])
        self.need(list(sources) == sorted(set(sources)), "inputs")
        self.need(bool(sources) or not images, "inputs")
        truth = None
        if record["ground_truth"] is not None:
            digest, count = record["ground_truth"]
            truth = GroundTruthDigest(self._text(digest), self._count(count))
            self.need(len(images) <= truth.images, "ground truth")
        known = self._count(record["known"])
        self.need(known <= len(ids), "classes")
        self.need(type(record["due"]) is bool, "due")
        columns = self._columns(record["columns"], begin)
        classes = 1 if protocol.class_agnostic else len(ids)
        self.need(type(record["tie_range"]) is bool, "ties")
        sizes = classes, len(images)
        block = self._block(columns, protocol, sizes, with_ties=record["tie_range"])
        position = self._indices(columns["position"], len(images) if truth else 0, "position")
        self.need(
            truth is None or _ascend(position, truth.images),
            "position",
        )
        source = self._indices(columns["source"], len(images) if len(sources) > 1 else 0, "source")
        self.need(int(source.max(initial=0)) < max(len(sources), 1), "source")
        return {
            "protocol": protocol,
            "images": images,
            "class_ids": ids,
            "class_names": texts,
            "known": known,
            "lowest_score": self._score(record["lowest_score"]),
            "groups": self._groups(record["groups"]),
            "ground_truth": truth,
            "position": position,
            "due": record["due"],
            "unselected": self._unselected(record.get("unselected"), ids),
            "sources": sources,
            "source": source.astype(np.int32) if len(source) else np.zeros(len(images), np.int32),
            "inputs": tuple(self._input(entry) for entry in record["inputs"]),
            "shared_notes": tuple(self._note(entry) for entry in record["shared_notes"]),
            "own_notes": tuple(self._note(entry) for entry in record["notes"]),
            "pieces": (BlockSlice.whole(block, len(images)),),
            "counts": self._box_counts(record["boxes"]),
            "categories": self._categories(record["categories"]),
            "boxes": self._boxes(columns["sample_key"], columns["sample_counts"]),
            "name": self.name,
        }

    def _unselected(self, listed: Any, ids: tuple[Name, ...]) -> tuple[Name, ...] | None:
        """Return the classes that are not kept."""
        if listed is None:
            return None
        names = self._names(listed)
        self.need(list(names) == sorted(names) and {*names}.isdisjoint(ids), "classes")
        return names

    # --- columns

    def _columns(self, listed: Any, begin: int) -> Columns:
        columns: Columns = {}
        end = len(self.data) - _CHECKSUM
        for name, kind, count in listed:
            real = name in ("score", "tie_score")
            self.need(kind == "<f8" if real else kind in _NUMBERS, "columns")
            size = self._count(count) * int(kind[2:])
            padded = size + -size % 8
            self.need(padded <= end - begin, "columns")
            self.need(not any(self.data[begin + size : begin + padded]), "columns")
            column = np.frombuffer(self.data, kind, count, begin)
            columns[name] = column.astype(column.dtype.newbyteorder("="), copy=False)
            begin += padded
        self.need(begin == end, "columns")
        self.need([*columns] == _ORDER, "columns")
        return columns

    def _block(
        self, columns: Columns, protocol: Protocol, sizes: tuple[int, int], *, with_ties: bool
    ) -> Block:
        classes, images = sizes
        rules = match_params(protocol)
        every = (1 << len(rules.thresholds)) - 1
        areas, limits = len(rules.area_ranges), len(rules.max_dets)
        coverage = protocol.matching == "by-iou"
        words = empty_bits(rules, 0).dtype
        match_flags = MatchFlags(
            self._table(columns, "match_max_dets_index", 1, np.dtype("u1"), limits)[0],
            self._table(columns, "match_true_positive", areas, words, every),
            self._table(columns, "match_ignored", areas, words, every),
            self._table(columns, "match_duplicate", 1, np.dtype("u1"), 1)[0].view(np.bool_),
        )
        self.need(len({table.shape[-1] for table in match_flags}) == 1, "match results")
        self.need(not (match_flags.true_positive & match_flags.ignored).any(), "match results")
        kinds = GroundTruthKinds(
            self._table(columns, "kind_positive", areas, np.dtype("u1"), 1).view(np.bool_),
            self._table(columns, "kind_covered", areas * limits if coverage else 0, words, every),
        )
        if not coverage:
            kinds = kinds._replace(covered=empty_bits(rules, kinds.positive.shape[1])[:0])
        self.need(kinds.covered.shape[1] == kinds.positive.shape[1], "ground truths")
        found = self._side(columns, ("detections", "image", "match_code"), (classes, images))
        truths = self._side(
            columns, ("ground_truths", "truth_image", "truth_kind"), (classes, images)
        )
        self.need(
            int(found.code.max(initial=0)) < max(len(match_flags.max_dets_index), 1),
            "match results",
        )
        self.need(int(truths.code.max(initial=0)) < max(kinds.positive.shape[1], 1), "kinds")
        self.need(bool(match_flags.max_dets_index.size) or not len(found.code), "match results")
        self.need(bool(kinds.positive.size) or not len(truths.code), "kinds")
        score = columns["score"]
        self.need(len(score) == len(found.image), "scores")
        self.need(bool(np.isfinite(score).all()), "scores")
        self.need(not (coverage and len(score)), "proposals are counted, not ranked")
        proposals = self._indices(columns["proposals"], images if coverage else 0, "proposals")
        shape = len(rules.thresholds), areas, limits
        ties = Ties.read(columns, shape, (classes, images))
        self.need(with_ties or not len(ties.bounds), "ties")
        return Block(
            found._replace(score=score),
            truths,
            match_flags,
            kinds,
            columns["proposals"][: len(proposals)],
            ties if with_ties else None,
        )

    def _table(
        self, columns: Columns, name: str, rows: int, kind: "np.dtype[Any]", most: int
    ) -> NDArray[Any]:
        column = columns[name]
        self.need(column.dtype == kind, name)
        self.need(len(column) % rows == 0 if rows else not len(column), name)
        self.need(int(column.max(initial=0)) <= most, name)
        return column.reshape(rows, len(column) // rows) if rows else column.reshape(0, 0)

    def _side(
        self, columns: Columns, names: tuple[str, str, str], counts: tuple[int, int]
    ) -> ClassColumns:
        (per_class, image, code), (classes, images) = (columns[name] for name in names), counts
        what = names[0].replace("_", " ")
        if len(image) > self.limits.records:
            self.refuse(
                f"has {len(image)} {what}, above the limit of {self.limits.records}",
                "raise the limit",
            )
        self.need(len(per_class) == classes and len(image) == len(code), what)
        sizes = self._indices(per_class, classes, what)
        self.need(int(sizes.max(initial=0)) <= len(image), what)
        self.need(sum(sizes.tolist()) == len(image), what)
        self.need(not len(image) or int(image.max()) < images, f"images of {what}")
        start = np.concatenate([[0], np.cumsum(sizes)])
        return ClassColumns(start.astype(np.int64), image, code, np.zeros(0))

    def _indices(self, column: NDArray[Any], count: int, what: str) -> NDArray[np.int64]:
        self.need(len(column) == count, what)
        self.need(int(column.max(initial=0)) < 1 << 62, what)
        return column.astype(np.int64)

    def _boxes(self, key: NDArray[Any], counts: NDArray[Any]) -> BoxEvidence:
        self.need(key.dtype == np.uint64 and len(key) <= IMAGES, "sample")
        self.need(bool((key[1:] > key[:-1]).all()), "sample")
        whole = self._indices(counts, len(key) * COUNTS, "sample")
        return BoxEvidence(key, whole.reshape(-1, COUNTS))

    # --- values of the heading

    def _names(self, values: Any) -> tuple[Name, ...]:
        self.need(isinstance(values, list), "names")
        self.need(set(map(type, values)) in (set(), {int}, {str}), "names")
        self.need(len(set(values)) == len(values) <= MOST_ROWS, "names")
        if len(values) > self.limits.records:
            self.refuse(
                f"has {len(values)} names, above the limit of {self.limits.records}",
                "raise the limit",
            )
        return tuple(values)

    def _groups(self, pairs: Any) -> dict[Name, str]:
        names = self._names([name for name, _ in pairs])
        groups = [self._text(group) for _, group in pairs]
        self.need({*groups} <= {*GROUPS}, "groups")
        return dict(zip(names, groups, strict=True))

    def _text(self, value: Any) -> str:
        self.need(isinstance(value, str), "text")
        return str(value)

    def _count(self, value: Any) -> int:
        self.need(type(value) is int and 0 <= value < 1 << 62, "count")
        return int(value)

    def _box_counts(self, values: Any) -> BoxCounts:
        counts = BoxCounts(*map(self._count, values))
        within = counts.truths_backward <= counts.truths
        self.need(within and counts.detections_backward <= counts.detections, "boxes")
        self.need(len(values) == len(counts) and counts.known <= 1, "boxes")
        return counts

    def _categories(self, values: Any) -> CategorySample:
        self.need(isinstance(values, list) and len(values) <= SAMPLED_IMAGES, "categories")
        sample = tuple(
            (self._whole(key), tuple(self._pair(pair) for pair in pairs)) for key, pairs in values
        )
        keys = [key for key, _ in sample]
        self.need(keys == sorted({*keys}), "categories")
        return sample

    def _pair(self, values: Any) -> tuple[int, int, int, int]:
        number, due, got, count = map(self._whole, values)
        self.need(count > 0, "categories")
        return number, due, got, count

    def _whole(self, value: Any) -> int:
        self.need(type(value) is int and abs(value) < 1 << 64, "categories")
        return int(value)

    def _score(self, value: Any) -> float | None:
        self.need(value is None or (type(value) is float and isfinite(value)), "lowest score")
        return None if value is None else float(value)

    def _input(self, entry: Any) -> Input:
        role, path, sha256, files, records, *reading = entry
        self.need(role in ("ground_truth", "detections"), "inputs")
        texts = self._text(path), self._text(sha256)
        options = tuple(
            (self._text(name), self._text(value)) for listed in reading for name, value in listed
        )
        return Input(role, *texts, self._count(files), self._count(records), options)

    def _note(self, entry: Any) -> Note:
        code, message, count, severity = entry
        self.need(severity in ("warning", "info"), "notes")
        return Note(self._text(code), self._text(message), self._count(count), severity)


_ORDER = [
    "position",
    "source",
    "proposals",
    "detections",
    "ground_truths",
    "match_max_dets_index",
    "match_true_positive",
    "match_ignored",
    "match_duplicate",
    "kind_positive",
    "kind_covered",
    "score",
    "image",
    "match_code",
    "truth_image",
    "truth_kind",
    *COLUMNS,
    "sample_key",
    "sample_counts",
]
