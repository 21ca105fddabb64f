"""Where the rows of a folder of text files, or of XML, stand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from detap.formats.named.problems import Problems
from detap.formats.named.sides import CORNERS, Stand
from detap.formats.text.folder import Folder
from detap.formats.text.lines import LineForm, read_lines
from detap.formats.text.rows import Rows, content, rows_of
from detap.io.limits import Limits
from detap.tables.detection import Flags

_ELEMENTS = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True, slots=True)
class Places:
    """Where boxes stand: in lines of a form, or (None) in XML."""

    folder: Folder
    members: Sequence[str]
    rows: Rows
    form: LineForm | None
    limits: Limits
    _lines: dict[int, list[int]] = field(default_factory=dict, init=False, repr=False)

    def stand(self, as_is: bool) -> Stand:
        """Return what is asked where something is to be said of them."""
        return Stand(
            self.folder.given,
            self.limits,
            as_is,
            self.place,
            "xyxy" if self.form is None else self.form.encoding,
            _ELEMENTS if self.form is None else CORNERS,
            "" if self.form is None else self.form.swapped,
        )

    def refuse(self, faults: Iterable[tuple[Flags, str]], problems: Problems) -> None:
        """Raise InputError with all problems, those of rows (N,) that have a fault among them."""
        for flags, message in faults:
            for row in np.flatnonzero(flags).tolist():
                problems.add(*self.place(row), message, "correct the line")
        problems.raise_any()

    def place(self, row: int) -> tuple[str, str]:
        """Return the file of a row, and its line there; the last such file is not read twice."""
        number = int(self.rows.file[row])
        file = self.folder.file(self.members[number])
        record = row - int(rows_of(self.rows, number)[0])
        if self.form is None:
            return file, f"object {record + 1}"
        if number not in self._lines:
            problems = Problems(1)
            data = content(file, problems, self.limits) or b""
            self._lines.clear()
            self._lines[number] = read_lines(data, file, self.form, problems).place
        lines = self._lines[number]
        return file, f"line {lines[record]}" if record < len(lines) else ""
