"""What a line of YOLO's is: a class, then a box or a polygon, then a confidence of a detection."""

from dataclasses import dataclass

from detap.formats.reading.problems import FaultError
from detap.formats.text.lines import LineForm, columns_of, numbers_of

BOX = ("xc", "yc", "w", "h")
COLUMNS = ("conf-last", "conf-first")
"""Where the confidence stands: as Ultralytics writes it, or as Padilla's tools do."""

SAVE_CONF = "run the detector again with save_txt=True save_conf=True, into a new folder"


@dataclass(frozen=True, slots=True)
class YoloForm(LineForm):
    """Lines of ``class xc yc w h [conf]`` or ``class x y x y x y ... [conf]``, in fractions.

    Of a polygon, the lowest x and y and the highest are left, in the place of the box.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of a box."""
        return ("class", *BOX, *(("conf",) if self.scored else ()))

    def read_line(self, text: str) -> tuple[str, list[float], bool]:
        """Return the class, the numbers, and whether they are a polygon's corners."""
        columns = columns_of(text)
        points = len(columns) - 1 - self.scored
        is_box = points == len(BOX)
        if not is_box and (points < 6 or points % 2):
            raise FaultError(*self._wrong_count(len(columns)))
        name = self.resolve(columns[0])
        titles = self.columns[1:]
        if not is_box:
            titles = ("x", "y") * (points // 2) + titles[len(BOX) :]
        values = numbers_of(titles, columns[1:])
        if not is_box:
            x, y = values[0:points:2], values[1:points:2]
            values = [min(x), min(y), max(x), max(y), *values[points:]]
        return name, values, not is_box

    def _wrong_count(self, count: int) -> tuple[str, str]:
        message = f"has {count} column{'s' * (count != 1)}"
        due = f"write `{' '.join(self.columns)}`"
        polygon = f"`class x1 y1 x2 y2 x3 y3 ...{' conf' * self.scored}`"
        if not self.scored:
            if count == len(self.columns) + 1:
                return f"{message}, one more than a box: a confidence, as detections have?", due
            if count > len(self.columns):
                return f"{message}: a polygon has an even number of coordinates", f"write {polygon}"
        elif count == len(self.columns) - 1:
            return f"{message}: the confidence is missing, as without save_conf", SAVE_CONF
        elif count == len(self.columns) + 1:
            message += ": a box, its confidence and the id of a tracker, or a polygon of three "
            return f"{message}corners without confidence", f"take the id away; {due}"
        elif count > len(self.columns):
            message += ": a polygon without confidence, as without save_conf, or with the id of a "
            return f"{message}tracker behind it", f"{SAVE_CONF}; or take the id away"
        return f"{message}, {len(self.columns)} are due", f"{due}, or {polygon}"
