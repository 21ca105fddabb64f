"""Binary format of partials: JSON header, little-endian columns, checksum.

::

    8 bytes   magic; the last byte is the format version
    8 bytes   length of the header
    header    JSON, padded with spaces to a multiple of 8
    columns   as listed in the header, each padded with zeros to a multiple of 8
    32 bytes  blake2b of all bytes before

The bytes depend only on the content, not on shards, their order, or threads.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from detap.checks.boxes import COUNTS, IMAGES, SampledBoxCounts
from detap.checks.inputs import BoxCounts
from detap.core.match_table import AreaIouPair, MatchFlags, empty_bits
from detap.core.packing import narrowest_dtype
from detap.errors import DetapError, InputError, Note, Problem, UsageError
from detap.evaluation.partial import jaccard_columns
from detap.evaluation.partial.blocks import Block, BlockSlice, ClassColumns, GroundTruthKinds
from detap.evaluation.partial.provenance import GroundTruthDigest, Input
from detap.evaluation.partial.tie_columns import COLUMNS, Ties
from detap.evaluation.run import match_params
from detap.io.json_text import check_text
from detap.io.limits import Limits
from detap.metrics import of_jaccard_counts, of_matched_iou
from detap.protocols import Protocol
from detap.tables.columns import MOST_ROWS, Name
from detap.tables.detection import GROUPS, SAMPLED_IMAGES, CategorySample, Flags, Floats

if TYPE_CHECKING:
    from detap.evaluation.partial.partial import Partial

Columns = dict[str, NDArray[Any]]

VERSION = 2
_MAGIC = b"detapPT"
_CHECKSUM = 32
_CHUNK = 1 << 22
_RECREATE = "recreate it"
_INTEGER_TYPES = ("<u1", "<u2", "<u4", "<u8")


# --- writing


class _Column(NamedTuple):
    """A column to be written.

    Attributes
    ----------
    dtype : str
        The dtype, little-endian.
    length : int
        The number of values.
    parts : iterable of (n,) arrays
        Created on demand; together `length` values that fit `dtype`.
    """

    dtype: str
    length: int
    parts: Iterable[NDArray[Any]]

    @classmethod
    def whole(cls, column: NDArray[Any]) -> "_Column":
        return cls(_dtype_name(column), len(column), (column,))

    def encoded_chunks(self) -> Iterator[bytes | memoryview]:
        """Yield the column's bytes, padded to a multiple of 8."""
        size = 0
        for part in self.parts:
            chunk = np.ascontiguousarray(part, self.dtype)
            size += chunk.nbytes
            yield chunk.view(np.uint8).data
        yield bytes(-size % 8)


def encode(partial: "Partial") -> Iterator[bytes | memoryview]:
    """Yield the bytes of a partial in chunks, each created on demand."""
    hasher = blake2b(digest_size=_CHECKSUM)
    for chunk in _body(partial):
        hasher.update(chunk)
        yield chunk
    yield hasher.digest()


def _body(partial: "Partial") -> Iterator[bytes | memoryview]:
    """Yield all bytes but the checksum."""
    columns = _columns(partial)
    protocol = partial.protocol
    heading = _json(
        {
            "boxes": list(partial.counts),
            "categories": partial.categories,
            "classes": [*zip(partial.class_ids, partial.class_names, strict=True)],
            "columns": [[name, column.dtype, column.length] for name, column in columns.items()],
            "requires_all_images": partial.requires_all_images,
            "ground_truth": partial.ground_truth,
            "groups": [[n, partial.groups[n]] for n in partial.class_ids if n in partial.groups],
            "images": partial.images,
            "inputs": [source if source.reading else source[:-1] for source in partial.inputs],
            "ground_truth_classes": partial.ground_truth_classes,
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
        yield from column.encoded_chunks()


def _dtype_name(column: NDArray[Any]) -> str:
    return f"<{column.dtype.kind}{column.dtype.itemsize}"


def _json(record: Any) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def _note(note: Note) -> list[Any]:
    return [note.code, note.message, note.count, note.severity]


def _columns(partial: "Partial") -> dict[str, _Column]:
    """Return the columns by name, in the order of the format.

    Columns of rows are gathered one by one, a few classes at a time, to save memory.
    """
    tables = partial.merged_tables
    match_flags, match_code = _used_entries(
        tables.match_flags,
        tables.match_code,
        [block_slice.block.detections for block_slice in partial.block_slices],
    )
    kinds, kind = _used_entries(
        tables.kinds,
        tables.kind_code,
        [block_slice.block.ground_truths for block_slice in partial.block_slices],
    )
    counts, images = partial.sizes, len(partial.images)
    detection_count, truth_count = (int(count) for count in counts.sum(axis=1))
    by_iou = partial.protocol.matching == "by-iou"
    image = _dtype_for(images - 1)
    ties = Ties.of(partial.tie_groups() if partial.has_ties else ())
    small = {
        "position": _narrowed(partial.position),
        "source": _narrowed(partial.source if len(partial.sources) > 1 else partial.source[:0]),
        "proposals": _narrowed(partial.proposals if by_iou else partial.proposals[:0]),
        "detections": _narrowed(counts[0]),
        "ground_truths": _narrowed(counts[1]),
        "match_max_dets_index": match_flags.max_dets_index,
        "match_true_positive": match_flags.true_positive.ravel(),
        "match_ignored": match_flags.ignored.ravel(),
        "match_duplicate": match_flags.duplicate.view(np.uint8),
        "kind_positive": kinds.positive.ravel().view(np.uint8),
        "kind_covered": kinds.covered.ravel(),
    }
    tie_columns = {
        name: column if name == "tie_score" else _narrowed(column)
        for name, column in ties.columns().items()
    }
    return {
        **{name: _Column.whole(column) for name, column in small.items()},
        "score": _Column(
            "<f8", detection_count, (rows.score for rows in partial.detections_in_order())
        ),
        "image": _Column(
            image,
            detection_count,
            (rows.image for rows in partial.detections_in_order(scores=False)),
        ),
        "match_code": _Column(
            _dtype_name(match_code),
            detection_count,
            (match_code[rows.code] for rows in partial.detections_in_order(scores=False)),
        ),
        **_matched_iou(partial),
        "truth_image": _Column(
            image, truth_count, (rows.image for rows in partial.ground_truths_in_order())
        ),
        "truth_kind": _Column(
            _dtype_name(kind),
            truth_count,
            (kind[rows.code] for rows in partial.ground_truths_in_order()),
        ),
        **{
            name: _Column.whole(_narrowed(column))
            for name, column in jaccard_columns.columns(partial.jaccard).items()
        },
        **{name: _Column.whole(column) for name, column in tie_columns.items()},
        "sample_key": _Column.whole(partial.boxes.key),
        "sample_counts": _Column.whole(_narrowed(partial.boxes.counts.ravel())),
    }


def _matched_iou(partial: "Partial") -> dict[str, _Column]:
    """Return the column of the IoUs of true positives, for one kept pair after another."""
    pairs = [*of_matched_iou(partial.protocol)]
    if not pairs:
        return {}
    hits = [_hits(partial.merged_tables.match_flags, pair) for pair in pairs]
    count = sum(
        int(np.count_nonzero(hit[rows.code]))
        for rows in partial.detections_in_order(scores=False)
        for hit in hits
    )
    parts = (
        rows.score[hit[rows.code]]
        for index, hit in enumerate(hits)
        for rows in partial.detections_in_order(iou=index)
    )
    return {"matched_iou": _Column("<f8", count, parts)}


def _hits(match_flags: MatchFlags, pair: AreaIouPair) -> Flags:
    """Return True for the match flags of a true positive, (P,) bool."""
    bits = match_flags.true_positive[pair[0]]
    hits: Flags = (bits >> bits.dtype.type(pair[1])) & bits.dtype.type(1) != 0
    return hits


def _used_entries(
    tables: Any, codes: Sequence[NDArray[np.uint32]], column_sets: Sequence[ClassColumns]
) -> tuple[Any, NDArray[Any]]:
    """Return tables with only the entries in use, and their new indices."""
    used = np.zeros(tables[0].shape[-1], np.bool_)
    for code, columns in zip(codes, column_sets, strict=True):
        occurs = np.zeros(len(code), np.bool_)
        for begin in range(0, len(columns.code), _CHUNK):
            occurs[columns.code[begin : begin + _CHUNK]] = True
        used[code[occurs]] = True
    number = _narrowed(np.cumsum(used) - 1)
    return tables._make(table.compress(used, axis=-1) for table in tables), number


def _dtype_for(maximum: int) -> str:
    return narrowest_dtype(max(maximum, 0))


def _narrowed(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(_dtype_for(int(column.max(initial=0))))


# --- reading


def decode(data: Any, limits: Limits, name: str) -> dict[str, Any]:
    """Return the checked fields of a partial from its bytes.

    Parameters
    ----------
    data : bytes-like
        Not copied if read-only.
    limits : Limits
        The limits of the input.
    name : str
        The name used in error messages.

    Raises
    ------
    InputError
        If the bytes are not a partial, corrupt, or exceed the limits.
    UsageError
        If `data` is not bytes-like.
    """
    return _Reader(_bytes(data), limits, name).fields()


def _bytes(data: Any) -> memoryview:
    try:
        view = memoryview(data).cast("B")
    except TypeError:
        raise UsageError(f"expected a Partial or its bytes, got {type(data).__name__}") from None
    begin = np.frombuffer(view, np.uint8)
    if view.readonly and not begin.ctypes.data % 8:
        return view
    return memoryview(bytes(view))


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _is_ascending(position: NDArray[np.int64], count: int) -> bool:
    return not len(position) or bool((np.diff(position) > 0).all() and position[-1] < count)


class _Reader:
    """Reader of one partial, which names it in errors."""

    def __init__(self, data: memoryview, limits: Limits, name: str) -> None:
        self.data, self.limits, self.name = data, limits, name

    def refuse(self, message: str, hint: str = _RECREATE) -> NoReturn:
        raise InputError(Problem(self.name, "", message, hint))

    def require(self, condition: bool, subject: str) -> None:
        if not condition:
            self.refuse(f"is damaged: {subject}")

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
        """Return the header and the offset of the columns."""
        data = self.data
        if len(data) > self.limits.file_bytes:
            self.refuse(
                f"has {len(data)} bytes, above the limit of {self.limits.file_bytes}",
                "raise the limit, or merge fewer partials at a time",
            )
        if data[:7] != _MAGIC or len(data) < 16 + _CHECKSUM:
            self.refuse("is not a partial, or is truncated", _RECREATE)
        if data[7] != VERSION:
            self.refuse(
                f"has format version {data[7]}, expected {VERSION}",
                "recreate it with this version of detap",
            )
        if blake2b(data[:-_CHECKSUM], digest_size=_CHECKSUM).digest() != data[-_CHECKSUM:]:
            self.refuse("is damaged: checksum mismatch", "recreate it or copy it again")
        size = int.from_bytes(data[8:16], "little")
        self.require(size % 8 == 0 and size <= len(data) - 16 - _CHECKSUM, "no heading")
        text = bytes(data[16 : 16 + size]).rstrip(b" ")
        try:
            record = json.loads(text, parse_constant=_refuse_constant)
            check_text(record)
            self.require(isinstance(record, dict) and _json(record) == text, "heading")
        except (ValueError, RecursionError) as error:
            self.refuse(f"is damaged: heading: {error}")
        return record, 16 + size

    def _fields(self, record: dict[str, Any], begin: int) -> dict[str, Any]:
        protocol = Protocol.from_dict(record["protocol"])
        by_iou = protocol.matching == "by-iou"
        self.require(protocol.class_agnostic or not by_iou, "proposals have no classes")
        images = self._names(record["images"])
        ids = self._names([name for name, _ in record["classes"]])
        texts = tuple(self._text(text) for _, text in record["classes"])
        sources = tuple(self._text(text) for text in record["sources"])
        self.require(list(sources) == sorted(set(sources)), "inputs")
        self.require(bool(sources) or not images, "inputs")
        truth = None
        if record["ground_truth"] is not None:
            digest, count = record["ground_truth"]
            truth = GroundTruthDigest(self._text(digest), self._count(count))
            self.require(len(images) <= truth.images, "ground truth")
        ground_truth_classes = self._count(record["ground_truth_classes"])
        self.require(ground_truth_classes <= len(ids), "classes")
        self.require(type(record["requires_all_images"]) is bool, "requires_all_images")
        iou_pairs = tuple(of_matched_iou(protocol))
        columns = self._columns(record["columns"], begin, _order(protocol))
        classes = 1 if protocol.class_agnostic else len(ids)
        self.require(type(record["tie_range"]) is bool, "ties")
        sizes = classes, len(images)
        jaccard = jaccard_columns.read(columns, len(of_jaccard_counts(protocol)), sizes)
        block = self._block(columns, protocol, sizes, iou_pairs, with_ties=record["tie_range"])
        block = block._replace(jaccard=jaccard)
        position = self._indices(columns["position"], len(images) if truth else 0, "position")
        self.require(
            truth is None or _is_ascending(position, truth.images),
            "position",
        )
        source = self._indices(columns["source"], len(images) if len(sources) > 1 else 0, "source")
        self.require(int(source.max(initial=0)) < max(len(sources), 1), "source")
        return {
            "protocol": protocol,
            "images": images,
            "class_ids": ids,
            "class_names": texts,
            "ground_truth_classes": ground_truth_classes,
            "lowest_score": self._score(record["lowest_score"]),
            "groups": self._groups(record["groups"]),
            "ground_truth": truth,
            "position": position,
            "requires_all_images": record["requires_all_images"],
            "unselected": self._unselected(record.get("unselected"), ids),
            "sources": sources,
            "source": source.astype(np.int32) if len(source) else np.zeros(len(images), np.int32),
            "inputs": tuple(self._input(values) for values in record["inputs"]),
            "shared_notes": tuple(self._note(values) for values in record["shared_notes"]),
            "own_notes": tuple(self._note(values) for values in record["notes"]),
            "block_slices": (BlockSlice.full(block, len(images)),),
            "counts": self._box_counts(record["boxes"]),
            "categories": self._categories(record["categories"]),
            "boxes": self._boxes(columns["sample_key"], columns["sample_counts"]),
            "name": self.name,
        }

    def _unselected(self, listed: Any, ids: tuple[Name, ...]) -> tuple[Name, ...] | None:
        """Return the classes not kept."""
        if listed is None:
            return None
        names = self._names(listed)
        self.require(list(names) == sorted(names) and {*names}.isdisjoint(ids), "classes")
        return names

    # --- columns

    def _columns(self, listed: Any, begin: int, order: list[str]) -> Columns:
        columns: Columns = {}
        end = len(self.data) - _CHECKSUM
        for name, dtype, count in listed:
            is_float = name in ("score", "matched_iou", "tie_score")
            self.require(dtype == "<f8" if is_float else dtype in _INTEGER_TYPES, "columns")
            size = self._count(count) * int(dtype[2:])
            padded = size + -size % 8
            self.require(padded <= end - begin, "columns")
            self.require(not any(self.data[begin + size : begin + padded]), "columns")
            column = np.frombuffer(self.data, dtype, count, begin)
            columns[name] = column.astype(column.dtype.newbyteorder("="), copy=False)
            begin += padded
        self.require(begin == end, "columns")
        self.require([*columns] == order, "columns")
        return columns

    def _block(
        self,
        columns: Columns,
        protocol: Protocol,
        sizes: tuple[int, int],
        iou_pairs: Sequence[AreaIouPair],
        *,
        with_ties: bool,
    ) -> Block:
        classes, images = sizes
        params = match_params(protocol)
        all_bits = (1 << len(params.thresholds)) - 1
        areas, limits = len(params.area_ranges), len(params.max_dets)
        by_iou = protocol.matching == "by-iou"
        bits_dtype = empty_bits(params, 0).dtype
        match_flags = MatchFlags(
            self._table(columns, "match_max_dets_index", 1, np.dtype("u1"), limits)[0],
            self._table(columns, "match_true_positive", areas, bits_dtype, all_bits),
            self._table(columns, "match_ignored", areas, bits_dtype, all_bits),
            self._table(columns, "match_duplicate", 1, np.dtype("u1"), 1)[0].view(np.bool_),
        )
        self.require(len({table.shape[-1] for table in match_flags}) == 1, "match results")
        self.require(not (match_flags.true_positive & match_flags.ignored).any(), "match results")
        kinds = GroundTruthKinds(
            self._table(columns, "kind_positive", areas, np.dtype("u1"), 1).view(np.bool_),
            self._table(
                columns, "kind_covered", areas * limits if by_iou else 0, bits_dtype, all_bits
            ),
        )
        if not by_iou:
            kinds = kinds._replace(covered=empty_bits(params, kinds.positive.shape[1])[:0])
        self.require(kinds.covered.shape[1] == kinds.positive.shape[1], "ground truths")
        detections = self._class_columns(
            columns, ("detections", "image", "match_code"), (classes, images)
        )
        ground_truths = self._class_columns(
            columns, ("ground_truths", "truth_image", "truth_kind"), (classes, images)
        )
        self.require(
            int(detections.code.max(initial=0)) < max(len(match_flags.max_dets_index), 1),
            "match results",
        )
        self.require(
            int(ground_truths.code.max(initial=0)) < max(kinds.positive.shape[1], 1), "kinds"
        )
        self.require(
            bool(match_flags.max_dets_index.size) or not len(detections.code), "match results"
        )
        self.require(bool(kinds.positive.size) or not len(ground_truths.code), "kinds")
        iou = self._iou(columns, [_hits(match_flags, pair)[detections.code] for pair in iou_pairs])
        score = columns["score"]
        self.require(len(score) == len(detections.image), "scores")
        self.require(bool(np.isfinite(score).all()), "scores")
        self.require(not (by_iou and len(score)), "proposals are counted, not ranked")
        proposals = self._indices(columns["proposals"], images if by_iou else 0, "proposals")
        shape = len(params.thresholds), areas, limits
        ties = Ties.read(columns, shape, (classes, images))
        self.require(with_ties or not len(ties.bounds), "ties")
        return Block(
            detections._replace(score=score, iou=iou),
            ground_truths,
            match_flags,
            kinds,
            columns["proposals"][: len(proposals)],
            ties if with_ties else None,
        )

    def _iou(self, columns: Columns, hits: list[Flags]) -> Floats:
        """Return the IoU of true positives at each kept pair, (C, n); 0 for other detections."""
        iou, begin = np.zeros((len(hits), len(columns["match_code"]))), 0
        if not hits:
            return iou[:, :0]
        values = columns["matched_iou"]
        self.require(bool((np.isfinite(values) & (values >= 0)).all()), "matched IoU")
        self.require(sum(map(np.count_nonzero, hits)) == len(values), "matched IoU")
        for row, hit in zip(iou, hits, strict=True):
            count = int(np.count_nonzero(hit))
            row[hit] = values[begin : begin + count]
            begin += count
        return iou

    def _table(
        self, columns: Columns, name: str, rows: int, dtype: "np.dtype[Any]", maximum: int
    ) -> NDArray[Any]:
        column = columns[name]
        self.require(column.dtype == dtype, name)
        self.require(len(column) % rows == 0 if rows else not len(column), name)
        self.require(int(column.max(initial=0)) <= maximum, name)
        return column.reshape(rows, len(column) // rows) if rows else column.reshape(0, 0)

    def _class_columns(
        self, columns: Columns, names: tuple[str, str, str], counts: tuple[int, int]
    ) -> ClassColumns:
        (per_class, image, code), (classes, images) = (columns[name] for name in names), counts
        subject = names[0].replace("_", " ")
        if len(image) > self.limits.records:
            self.refuse(
                f"has {len(image)} {subject}, above the limit of {self.limits.records}",
                "raise the limit",
            )
        self.require(len(per_class) == classes and len(image) == len(code), subject)
        sizes = self._indices(per_class, classes, subject)
        self.require(int(sizes.max(initial=0)) <= len(image), subject)
        self.require(sum(sizes.tolist()) == len(image), subject)
        self.require(not len(image) or int(image.max()) < images, f"images of {subject}")
        start = np.concatenate([[0], np.cumsum(sizes)])
        return ClassColumns(start.astype(np.int64), image, code, np.zeros(0))

    def _indices(self, column: NDArray[Any], count: int, subject: str) -> NDArray[np.int64]:
        self.require(len(column) == count, subject)
        self.require(int(column.max(initial=0)) < 1 << 62, subject)
        return column.astype(np.int64)

    def _boxes(self, key: NDArray[Any], counts: NDArray[Any]) -> SampledBoxCounts:
        self.require(key.dtype == np.uint64 and len(key) <= IMAGES, "sample")
        self.require(bool((key[1:] > key[:-1]).all()), "sample")
        values = self._indices(counts, len(key) * COUNTS, "sample")
        return SampledBoxCounts(key, values.reshape(-1, COUNTS))

    # --- values of the heading

    def _names(self, values: Any) -> tuple[Name, ...]:
        self.require(isinstance(values, list), "names")
        self.require(set(map(type, values)) in (set(), {int}, {str}), "names")
        self.require(len(set(values)) == len(values) <= MOST_ROWS, "names")
        if len(values) > self.limits.records:
            self.refuse(
                f"has {len(values)} names, above the limit of {self.limits.records}",
                "raise the limit",
            )
        return tuple(values)

    def _groups(self, pairs: Any) -> dict[Name, str]:
        names = self._names([name for name, _ in pairs])
        groups = [self._text(group) for _, group in pairs]
        self.require({*groups} <= {*GROUPS}, "groups")
        return dict(zip(names, groups, strict=True))

    def _text(self, value: Any) -> str:
        self.require(isinstance(value, str), "text")
        return str(value)

    def _count(self, value: Any) -> int:
        self.require(type(value) is int and 0 <= value < 1 << 62, "count")
        return int(value)

    def _box_counts(self, values: Any) -> BoxCounts:
        counts = BoxCounts(*map(self._count, values))
        within = counts.ground_truths_backward <= counts.ground_truths
        self.require(within and counts.detections_backward <= counts.detections, "boxes")
        self.require(len(values) == len(counts) and counts.known <= 1, "boxes")
        return counts

    def _categories(self, values: Any) -> CategorySample:
        self.require(isinstance(values, list) and len(values) <= SAMPLED_IMAGES, "categories")
        sample = tuple(
            (self._integer(key), tuple(self._pair(pair) for pair in pairs)) for key, pairs in values
        )
        keys = [key for key, _ in sample]
        self.require(keys == sorted({*keys}), "categories")
        return sample

    def _pair(self, values: Any) -> tuple[int, int, int, int]:
        number, expected, actual, count = map(self._integer, values)
        self.require(count > 0, "categories")
        return number, expected, actual, count

    def _integer(self, value: Any) -> int:
        self.require(type(value) is int and abs(value) < 1 << 64, "categories")
        return int(value)

    def _score(self, value: Any) -> float | None:
        self.require(value is None or (type(value) is float and isfinite(value)), "lowest score")
        return None if value is None else float(value)

    def _input(self, values: Any) -> Input:
        role, path, sha256, files, records, *reading = values
        self.require(role in ("ground_truth", "detections"), "inputs")
        texts = self._text(path), self._text(sha256)
        options = tuple(
            (self._text(name), self._text(value)) for listed in reading for name, value in listed
        )
        return Input(role, *texts, self._count(files), self._count(records), options)

    def _note(self, values: Any) -> Note:
        code, message, count, severity = values
        self.require(severity in ("warning", "info"), "notes")
        return Note(self._text(code), self._text(message), self._count(count), severity)


def _order(protocol: Protocol) -> list[str]:
    """Return the names of the columns in the order of the format."""
    used = {"matched_iou": bool(of_matched_iou(protocol))}
    used |= dict.fromkeys(jaccard_columns.COLUMNS, bool(of_jaccard_counts(protocol)))
    return [name for name in _ORDER if used.get(name, True)]


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
    "matched_iou",
    "truth_image",
    "truth_kind",
    *jaccard_columns.COLUMNS,
    *COLUMNS,
    "sample_key",
    "sample_counts",
]
