"""Where the rows of a folder of text files, or of XML, stand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from detap.formats.named.problems import Problems
from detap.formats.named.sides import CORNERS, Stand
from detap.formats.reading.stream import Limits
from detap.formats.text.folder import Folder
from detap.formats.text.lines import SWAPPED, LineForm, read_lines
from detap.formats.text.rows import Rows, content, rows_of
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

    def stand(self, as_is: bool) -> Stand:
        """Return what is asked where something is to be said of them."""
        return Stand(
            self.folder.given,
            self.limits,
            as_is,
            self.place,
            "corners" if self.form is None else self.form.encoding,
            _ELEMENTS if self.form is None else CORNERS,
            "" if self.form is None else SWAPPED,
        )

    def refuse(self, faults: Iterable[tuple[Flags, str]], problems: Problems) -> None:
        """Raise InputError with all problems, those of rows (N,) that have a fault among them."""
        for flags, message in faults:
            for row in np.flatnonzero(flags).tolist():
                problems.add(*self.place(row), message, "correct the line")
        problems.raise_any()

    def place(self, row: int) -> tuple[str, str]:
        """Return the file of a row, which is read again, and its line there."""
        number = int(self.rows.file[row])
        file = self.folder.file(self.members[number])
        record = row - int(rows_of(self.rows, number)[0])
        if self.form is None:
            return file, f"object {record + 1}"
        problems = Problems(1)
        lines = read_lines(content(file, problems, self.limits) or b"", file, self.form, problems)
        return file, f"line {lines.place[record]}" if record < len(lines.place) else ""
