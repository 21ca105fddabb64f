"""Invariants of the compiled scanner of annotations: it equals lxml, or leaves the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.voc_files import item, xml
from tests.formats.voc_oracle import check_annotation

blanks = st.text(" \t\n\r", max_size=3)
tags = st.sampled_from(
    ["pose", "truncated_", "occlude", "part", "name2", "x", "_a.b-c", "bndbox_", "size2", "n"]
)
words = st.text(
    st.characters(codec="utf-8", exclude_characters="<&>]\r\ufffe\uffff", exclude_categories=["C"]),
    min_size=1,
    max_size=8,
).filter(lambda text: text.strip(" \t\r\n") != "")
plain_texts = st.one_of(
    blanks, words, st.sampled_from(["a>b", "/>", "a &amp; b", "[x]", "] ]>", 'a="b"', "\x7f"])
)


@st.composite
def wrapped(draw: st.DrawFn, tag: str, inner: str) -> str:
    """Return an element around `inner`, with random whitespace."""
    behind = draw(st.sampled_from(["", " ", "\n\t"]))
    return f"<{tag}{behind}>{inner}</{tag}{behind}>"


@st.composite
def unknown(draw: st.DrawFn, depth: int = 2) -> str:
    """Return an unknown element that contains known ones."""
    tag = draw(tags)
    if draw(st.booleans()):
        return f"<{tag}/>"
    inner = draw(plain_texts)
    if depth:
        inner += "".join(draw(st.lists(unknown(depth=depth - 1), max_size=2)))
    if tag == "part":
        inner += "<name>head</name><bndbox><xmin>no</xmin></bndbox><difficult/>"
    return draw(wrapped(tag, inner))


lengths = st.one_of(
    st.integers(0, 2000).map(str),
    st.integers(0, 10**6).map(lambda value: f"{value / 1000}"),
    st.sampled_from(["0", "-0", "+7", "1.", ".5", "1e2", "1E+2", "0.1e-3", "00012.50", "5e-324"]),
)


@st.composite
def objects(draw: st.DrawFn) -> str:
    """Return a valid object with its children in any order."""
    low = sorted([draw(lengths), draw(lengths)], key=float)
    high = sorted([draw(lengths), draw(lengths)], key=float)
    corners = {"xmin": low[0], "xmax": low[1], "ymin": high[0], "ymax": high[1]}
    sides = [
        draw(wrapped(name, draw(blanks) + value + draw(blanks))) for name, value in corners.items()
    ]
    sides += draw(st.lists(unknown(depth=0), max_size=1))
    box = draw(blanks).join(draw(st.permutations(sides)))
    children = [
        draw(wrapped("name", draw(blanks) + draw(words) + draw(blanks))),
        draw(wrapped("bndbox", box)),
        *draw(st.lists(unknown(), max_size=3)),
    ]
    for flag in ("difficult", "truncated", "occluded"):
        values = ["0", "1", " 1\n"] if flag == "difficult" else ["1", "0.0597", "-1", "", "Left"]
        if draw(st.booleans()):
            children.append(draw(wrapped(flag, draw(st.sampled_from(values)))))
    return draw(wrapped("object", draw(blanks).join(draw(st.permutations(children)))))


@st.composite
def annotations(draw: st.DrawFn) -> bytes:
    """Return a valid plain annotation, which the scanner must accept."""
    declaration = draw(
        st.sampled_from(
            [
                "",
                '<?xml version="1.0"?>',
                "<?xml version='1.0' encoding='utf-8'?>\n",
                '<?xml version="1.0" encoding="UTF-8" ?>\r\n',
            ]
        )
    )
    children = draw(st.lists(objects(), max_size=4)) + draw(st.lists(unknown(), max_size=3))
    if draw(st.booleans()):
        width = draw(wrapped("width", draw(st.sampled_from(["500", "1e3", " 7.5"]))))
        height = draw(wrapped("height", draw(st.sampled_from(["375", "1"]))))
        children.append(draw(wrapped("size", draw(blanks) + width + height)))
    inner = draw(plain_texts).join(draw(st.permutations(children)))
    starts = [
        "<annotation>",
        '<annotation verified="yes">',
        *["<annotation\n>"] * (not declaration),
    ]
    root = f"{draw(st.sampled_from(starts))}{inner}</annotation >"
    return (declaration + root + draw(blanks)).encode()


@given(annotations())
def test_a_plain_annotation_is_scanned_as_lxml_reads_it(content: bytes) -> None:
    assert check_annotation(content), content


@pytest.mark.parametrize("piece", [b"<", b"&", b"\0", b"<x>", b"</object>", b" ", b"1", b"<!---->"])
def test_a_change_at_every_byte_of_a_small_annotation(piece: bytes) -> None:
    content = xml(item(more="<part a='1'/>")).encode()
    contents = [content[:at] + piece + content[at:] for at in range(len(content) + 1)]
    contents += [content[:at] for at in range(len(content))]
    contents += [content[:at] + content[at + 1 :] for at in range(len(content))]
    for changed in contents:
        check_annotation(changed)


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
    assert not check_annotation(content)


REGULAR = {
    "U+FFFD": "<annotation>\ufffd</annotation>".encode(),
    "deep": b"<annotation>" + b"<a>" * 31 + b"</a>" * 31 + b"</annotation>",
    "another side": xml(item()).replace("<xmin>", "<xmin2>9</xmin2><xmin>").encode(),
}


@pytest.mark.parametrize("content", REGULAR.values(), ids=REGULAR)
def test_annotations_that_are_scanned(content: bytes) -> None:
    assert check_annotation(content)
