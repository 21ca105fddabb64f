"""The compiled scanner of annotations equals lxml, or leaves the file to it."""

import pytest

from detap.formats.voc._scan import Annotations
from detap.formats.voc.tables import plain_start
from fuzz import targets
from tests.formats.voc_files import item, xml


def is_scanned(content: bytes) -> bool:
    """Return True if the scanner reads a file, and compare it with lxml and ElementTree."""
    targets.voc_xml(content)
    scanned = Annotations(100)
    read = scanned.read(plain_start(content), 0) is not None
    assert read or len(scanned) == 0
    return read


@pytest.mark.parametrize("piece", [b"<", b"&", b"\0", b"<x>", b"</object>", b" ", b"1", b"<!---->"])
def test_a_change_at_every_byte_of_a_small_annotation(piece: bytes) -> None:
    content = xml(item(more="<part a='1'/>")).encode()
    contents = [content[:at] + piece + content[at:] for at in range(len(content) + 1)]
    contents += [content[:at] for at in range(len(content))]
    contents += [content[:at] + content[at + 1 :] for at in range(len(content))]
    for changed in contents:
        is_scanned(changed)


IRREGULAR = {
    "declaration in capitals": b"<?XML version='1.0'?><annotation></annotation>",
    "declared Latin-1": b"<?xml version='1.0' encoding='latin-1'?><annotation></annotation>",
    "another encoding of UTF-8's length": (
        b"<?xml version='1.0' encoding='utx-8'?><annotation></annotation>"
    ),
    "version in two quotes": b"<?xml version='1.0\"?><annotation></annotation>",
    "declaration without an end": b"<?xml version='1.0'??<annotation></annotation>",
    "closing first": b"</annotation>",
    "nothing": b"",
    "root alone": b"<annotation/>",
    "deep": b"<annotation>" + b"<a>" * 40 + b"</a>" * 40 + b"</annotation>",
    "many attributes": b"<annotation " + b" ".join(b"a%d=''" % n for n in range(20)) + b"/>",
    "long name": b"<annotation><" + b"a" * 2000 + b"/></annotation>",
    "namespace": b"<annotation xmlns='x'></annotation>",
    "attribute after a colon": b"<annotation a:'x'></annotation>",
    "attribute without quotes": b"<annotation a=xbx></annotation>",
    "reference without an end": b"<annotation>&ampx</annotation>",
    "U+FFFE": "<annotation>\ufffe</annotation>".encode(),
    "U+FFFF": "<annotation>\uffff</annotation>".encode(),
    "line break in a name": xml(item("a\nb")).encode(),
    "two widths": xml("<size><width>5</width><width>6</width></size>", size=None).encode(),
    "second box without sides": xml(item(more="<bndbox></bndbox>")).encode(),
    "empty flag": xml(item(difficult=None, more="<difficult/>")).encode(),
    "reference in a name": xml(item("a&amp;b")).encode(),
    "number beyond double": xml(item(box=("1e400", 20, 30, 40))).encode(),
    "nested object": xml(item(more=f"<part>{item()}</part>")).encode(),
    "size twice": xml("<size/>", item()).encode(),
}


@pytest.mark.parametrize("content", IRREGULAR.values(), ids=IRREGULAR)
def test_annotations_left_to_lxml(content: bytes) -> None:
    assert not is_scanned(content)


PART = "<part><name>head</name><bndbox><xmin>no</xmin></bndbox><difficult/></part><x/>"
REGULAR = {
    "U+FFFD": "<annotation>\ufffd</annotation>".encode(),
    "deep": b"<annotation>" + b"<a>" * 31 + b"</a>" * 31 + b"</annotation>",
    "declaration": b"<?xml version='1.0' encoding='utf-8'?>\n" + xml(item()).encode(),
    "blanks": b'<?xml version="1.0" encoding="UTF-8" ?>\r\n' + xml(item()).encode() + b" \n",
    "attribute": xml(item()).replace("<annotation>", '<annotation verified="yes">').encode(),
    "blanks in tags": xml(item()).replace("<name>", "<name \n>").replace("</", "\t</").encode(),
    "text": xml(item("cat a>b"), 'a &amp; b ] ]> [x] a="b" \x7f \u00e9').encode(),
    "elements that count as others do": xml(item(more=PART), PART).encode(),
    "spelled numbers": xml(item(box=("+7", ".5", "1E+2", "00012.50"))).encode(),
    "flags": xml(item(more="<truncated>0.0597</truncated><occluded>Left</occluded>")).encode(),
    "no size, no flag": xml(item(difficult=None), size=None).encode(),
    "another side": xml(item()).replace("<xmin>", "<xmin2>9</xmin2><xmin>").encode(),
}


@pytest.mark.parametrize("content", REGULAR.values(), ids=REGULAR)
def test_annotations_that_are_scanned(content: bytes) -> None:
    assert is_scanned(content)
