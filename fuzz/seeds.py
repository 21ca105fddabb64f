"""Valid files to start from: small, and each with a special feature."""

import json
from collections.abc import Callable
from typing import Any

IMAGES = (1, 2, 3, 40, 2**60 + 1)
CATEGORIES: dict[int | str, str] = {1: "cat", 2: "dog", 90: "toothbrush"}

_RESULTS = [
    {"image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 20], "score": 0.9},
    {"image_id": 2, "category_id": 2, "bbox": [10.5, 10.25, 20.125, 1e1], "score": 8e-1},
    {"image_id": 40, "category_id": 90, "bbox": [0.0, -1, 0, 33.333333333333336], "score": 1},
]

_TRUTH: dict[str, Any] = {
    "info": {"year": 2017, "x": [None, True, False, {"y": "\u00e9\ud83d\ude00"}]},
    "images": [
        {"id": 1, "width": 640, "height": 480, "file_name": "a.jpg"},
        {"id": 2, "width": 500.0, "height": 375},
        {"id": 3},
    ],
    "annotations": [
        {
            "id": 7,
            "image_id": 1,
            "category_id": 1,
            "bbox": [1.5, 2.5, 30, 40.25],
            "area": 1207.5,
            "iscrowd": 0,
            "segmentation": [[1.5, 2, 3, 4.5, 5, 6]],
        },
        {"id": 8, "image_id": 2, "category_id": 2, "bbox": [5, 5, 9, 9], "iscrowd": 1},
        {
            "id": 9,
            "image_id": 1,
            "category_id": 2,
            "bbox": [0, 0, 3, 3],
            "area": 9,
            "ignore": 0,
            "segmentation": {"counts": [1, 2], "size": [3, 3]},
        },
    ],
    "categories": [
        {"id": 1, "name": "cat", "supercategory": "animal"},
        {"id": 2, "name": "d\u00f6g"},
        {"id": 90},
    ],
}


_WHOLE = [
    {"image_id": 1.0, "category_id": 2e0, "bbox": [1, 2, 3, 4], "score": 0.5},
    {"image_id": 2**60 + 1, "category_id": 90.0, "bbox": [1, 2, 3, 4], "score": 0.25},
]


def _renamed(value: object, spell: Callable[[int], object]) -> object:
    """Return a document with every id replaced."""
    if isinstance(value, list):
        return [_renamed(item, spell) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("id", "image_id", "category_id")
    return {k: spell(v) if k in ids else _renamed(v, spell) for k, v in value.items()}


def _spellings(value: object) -> list[bytes]:
    return [
        json.dumps(value).encode(),
        json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        .encode("utf-8", "surrogatepass")
        .decode("utf-8", "replace")
        .encode(),
        json.dumps(value, indent=1).encode(),
        json.dumps(value, indent="\t").replace("\n", "\r\n").encode(),
    ]


_OBJECTS = """<object><name>cat</name><pose>Left</pose><truncated>0</truncated>
<difficult>0</difficult><bndbox><xmin>10</xmin><ymin>20</ymin><xmax>30</xmax><ymax>40</ymax></bndbox>
</object><object><name>dog</name><bndbox><xmax>30.5</xmax><xmin>1e1</xmin><ymax>+40</ymax>
<ymin>.5</ymin></bndbox><part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax>
<ymax>5</ymax></bndbox></part><difficult>1</difficult></object>"""

_XML = f"""<annotation>
\t<folder>VOC2007</folder><filename>a.jpg</filename>
\t<source><annotation>PASCAL VOC2007</annotation><image>flickr</image></source>
\t<size><width>353</width><height>500</height><depth>3</depth></size>
\t<segmented>0</segmented>{_OBJECTS}
</annotation>
"""

_CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version><meta><task><labels><label><name>cat</name></label></labels>
</task></meta><image id="0" name="d/a.jpg" width="50" height="40">
<box label="cat" score=".5" occluded="0" xtl="1.5" ytl="2" xbr="11.5" ybr="22" rotation="0">
<attribute name="difficult">true</attribute></box><tag label="x"/></image>
<image id="1" name="b\\c.png"><box label="d&#246;g" score="1e0" xtl="+1" ytl=".5" xbr="9" ybr="4."/>
</image><image id="2" name="e"></image></annotations>
"""

_LABELME: dict[str, Any] = {
    "version": "5.0.1",
    "flags": {},
    "shapes": [
        {"label": "cat", "score": 0.5, "points": [[1, 2], [3.5, 4]], "shape_type": "rectangle"},
        {
            "label": "d\u00f6g",
            "score": 1,
            "points": [[9, 2], [3, 2], [3, 8], [9, 8]],
            "shape_type": "rectangle",
            "flags": {"difficult": True},
        },
    ],
    "imagePath": "..\\a.jpg",
    "imageData": None,
    "imageHeight": 40,
    "imageWidth": 50,
}

_BOXES = b"""ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf
a.jpg,xclick,/m/01,1,.25,0.5,1.25e-1,0.375,0,1
b,,/m/02,1,0,1,0,1,0,-1
a,x,/m/01,1,0.123456789012345678,.5,-0.0,1.,1,
"""

_SIDES = {"x": 1, "y": 2.5, "width": 3, "height": 4e0}
_CREATEML = [
    {"image": "d/a.jpg", "annotations": [{"label": "cat", "coordinates": _SIDES}]},
    {"image": "b.png", "annotations": []},
]
_REGION = {
    "shape_attributes": {"name": "rect", **_SIDES},
    "region_attributes": {"kind": "d\u00f6g"},
}
_VIA: dict[str, Any] = {
    "a.jpg7": {"filename": "a.jpg", "size": 7, "regions": [_REGION], "file_attributes": {}},
    "b.jpg7": {"filename": "b.jpg", "size": 7, "regions": {"0": _REGION}},
}
_DATUMARO: dict[str, Any] = {
    "categories": {"label": {"labels": [{"name": "cat"}, {"name": "d\u00f6g"}]}},
    "items": [
        {
            "id": "a",
            "annotations": [
                {"type": "bbox", "label_id": 1, "bbox": [1, 2.5, 3, 4]},
                {"type": "label", "label_id": 0},
            ],
            "image": {"path": "a.jpg", "size": [40, 50]},
        },
        {"id": "b", "annotations": []},
    ],
}
_SUPERVISELY: dict[str, Any] = {
    "tags": [],
    "size": {"height": 40, "width": 50},
    "objects": [
        {
            "classTitle": "cat",
            "geometryType": "rectangle",
            "tags": [{"name": "hard", "value": None}],
            "points": {"exterior": [[3, 4.5], [1, 2]], "interior": []},
        }
    ],
}
_VALUE = {"x": 1, "y": 2.5, "width": 3, "height": 4e0, "rotation": 0, "rectanglelabels": ["cat"]}
_RESULT = {
    "id": "r",
    "type": "rectanglelabels",
    "value": _VALUE,
    "original_width": 200,
    "original_height": 1e2,
    "image_rotation": 0,
}
_LABEL_STUDIO: list[Any] = [
    {
        "id": 1,
        "data": {"image": "/data/upload/1/0a1b2c3d-a.jpg"},
        "annotations": [
            {"result": [_RESULT, {"type": "choices", "value": {}}], "updated_at": "2026-01-01"},
            {"result": [_RESULT], "updated_at": "2026-01-02T00:00:00Z"},
        ],
    },
    {"data": {"image": "b.jpg"}, "completions": [{"result": [], "was_cancelled": False}]},
    {"data": {"image": "c.jpg"}, "annotations": [{"result": [], "was_cancelled": True}]},
]
_ROBOFLOW: dict[str, Any] = {
    "predictions": [{**_SIDES, "class": "d\u00f6g", "confidence": 0.5}],
    "image": {"width": 50, "height": 40},
}
_TFCSV = b"""filename,width,height,class,xmin,ymin,xmax,ymax
a.jpg,50,40,cat,1,2,3.5,4e0
a.jpg,50,40,"d, g",.5,2,+3,4.
b.jpg,,,cat,1,2,3,4
c.jpg,,,,,,,
"""

SEEDS: dict[str, list[bytes]] = {
    "createml": _spellings(_CREATEML),
    "via": [*_spellings(_VIA), *_spellings({"_via_img_metadata": _VIA})],
    "datumaro": _spellings(_DATUMARO),
    "supervisely": _spellings(_SUPERVISELY),
    "label-studio": _spellings(_LABEL_STUDIO),
    "roboflow": _spellings(_ROBOFLOW),
    "tfcsv": [_TFCSV, _TFCSV.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + _TFCSV],
    "cvat": [_CVAT.encode(), _CVAT.replace("utf-8", "utf-16").encode("utf-16")],
    "labelme": _spellings(_LABELME),
    "open-images": [
        _BOXES,
        _BOXES.replace(b"\n", b"\r\n").replace(b"a,x", b'\r\n"a","x, y"'),
        b'ImageID,LabelName,XMin,YMin,XMax,YMax\na,cat,"0,25","0,5","0,75",1\n',
    ],
    "coco-results": [
        *_spellings(_RESULTS),
        *_spellings(
            {"info": [], "annotations": _RESULTS, "categories": [{"id": 1, "name": "cat"}]}
        ),
        *_spellings({"predictions": _RESULTS[:1]}),
        *_spellings({"images": _TRUTH["images"], "licenses": [], "annotations": _WHOLE}),
        b"[]",
        json.dumps(_RESULTS * 3).encode(),
    ],
    "coco-truth": [
        *_spellings(_TRUTH),
        *_spellings({key: _TRUTH[key] for key in ("categories", "annotations", "images")}),
        json.dumps(_renamed(_TRUTH, float)).encode(),
        json.dumps(_renamed(_TRUTH, lambda n: 2**60 + n)).encode(),
        *_spellings(_renamed(_TRUTH, lambda n: f"\u00e9/{n}.jpg")),
    ],
    "voc-xml": [
        _XML.encode(),
        _XML.replace("\n", "").replace("\t", "").encode(),
        ('<?xml version="1.0" encoding="utf-8"?>\n' + _XML).encode(),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>' + _XML.replace("cat", "ch\u00e4t")).encode(
            "latin-1"
        ),
        _XML.replace("10", "1<!-- x -->0").encode(),
        _XML.replace("<name>cat", "<name>c&amp;t&#65;")
        .replace("<name>dog", "<name><![CDATA[d<g]]>")
        .encode(),
        b"<annotation></annotation>",
    ],
    "yolo-text": [
        b"",
        b"0 0.5 0.5 0.25 0.125 0.9\n12 .1 .2 .3 .4 1e-3\r\n\n7\t0 1 1. .5 0.25\n",
        b"0 .1 .2 .3 .1 .2 .4 .9\n3 0.10 0.20 0.30 0.10 0.25 0.45 0.125 0.5 0.875\n",
    ],
    "voc-text": [
        b"a 0.9 10 10 30 30\nb 0.8 1.5 2.25 1e2 +3.5e+1\na -3 0 0 .5 5.\n",
        b"a\t0.9\t10\t10\t30\t30\r\n  b  5   1 2 3 4  \r\n\r\nimg_03 1e-9 1 2 3 4",
        b"\xef\xbb\xbfa 0.123456789012345678 -5 -5 1000000 99999999999999999999\n",
        b"",
    ],
}
"""Valid inputs by target."""

TOKENS: dict[str, list[bytes]] = {
    "json": [
        *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"-", b"+", b".", b"e", b"E", b"0"),
        *(b"null", b"true", b"false", b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"-0.0"),
        *(b"1e-999", b"4.9e-324", b"2.4703282292062328e-324", b"1.7976931348623159e308"),
        *(b"9007199254740993", b"9223372036854775807", b"9223372036854775808", b"1" * 25),
        *(
            b"-9223372036854775808",
            b"0.1e1",
            b"1E0",
            b"1.0",
            b"00",
            b"0x1",
            b"1_0",
            b"\xef\xbb\xbf",
        ),
        *(b'"image_id"', b'"category_id"', b'"bbox"', b'"score"', b'"id"', b'"area"', b'"iscrowd"'),
        *(b'"ignore"', b'"annotations"', b'"images"', b'"categories"', b'"name"', b'"predictions"'),
        *(b'"sc\\u006fre"', b"\\u0000", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"\\n", b"\\x"),
        *(b"\0", b"\x7f", b"\xc3\xa9", b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\n", b"\r"),
        *(
            b"\t",
            b" ",
            b"\x0b",
            b"\x0c",
            b"\xc2\xa0",
            b"[" * 60,
            b'{"a":' * 50,
            b"{}",
            b"[]",
            b'""',
        ),
        *(b'"1"', b"1.5", b"[1,2,3,4]", b"[0,0,1e200,1e200]", b"[1,2,-3,4]", b"/**/", b"//", b"'"),
    ],
    "xml": [
        *(b"<", b">", b"</", b"/>", b"&", b";", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?x y?>"),
        *(b"<!DOCTYPE annotation>", b'<!DOCTYPE a [<!ENTITY x "1">]>', b"&x;", b"&lt;", b"&#49;"),
        *(b"&#x31;", b"&#0;", b"<object>", b"</object>", b"<name>", b"</name>", b"<bndbox>"),
        *(
            b"</bndbox>",
            b"<xmin>",
            b"</xmin>",
            b"<xmax>",
            b"<difficult>",
            b"</difficult>",
            b"<part>",
        ),
        *(
            b"</part>",
            b"<size>",
            b"<width>",
            b"</width>",
            b' a="b"',
            b" a='<'",
            b"xmlns='x'",
            b"x:y",
        ),
        *(
            b"nan",
            b"inf",
            b"1e999",
            b"1_0",
            b"0x1",
            b"-",
            b".",
            b"1,5",
            b"10",
            b"1e200",
            b"2",
            b"01",
        ),
        *(b"\0", b"\x0b", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8", b"\xff", b"\xef\xbb\xbf", b"\r"),
        *(b"\n", b"\t", b" ", b"\xed\xa0\x80", b"<a/>", b"<a>" * 60, b"<annotation>", b"<Object/>"),
        *(b'<?xml version="1.0" encoding="UTF-16"?>', b'<?xml version="1.1"?>', b"\xc3\xa9", b"]]"),
    ],
    "text": [
        *(b"a", b"b", b"c", b"img_03", b" ", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\x0b", b"\x0c"),
        *(b"\x1a", b"\xc2\xa0", b"\xc2\x85", b"\xe2\x80\xa8", b"\xff", b"\xef\xbb\xbf", b"\x1c"),
        *(
            b"nan",
            b"inf",
            b"1e999",
            b"1e-999",
            b"1_0",
            b"0x1",
            b"1,5",
            b"1e200",
            b"-1",
            b"+1",
            b".",
        ),
        *(b"1e", b"e1", b"--1", b"1.2.3", b"9007199254740993", b"4.9e-324", b"0.5", b"-0", b"99"),
        *(b"2.2250738585072011e-308", b"1.7976931348623159e308", b"\xef\xbc\x91", b"1" * 30, b"{"),
        *(b"<<<<<<< x\n", b"=======\n", b">>>>>>> x\n", b"difficult", b"<", b"[", b"1f", b"1d0"),
    ],
}

_DRAWN: list[Any] = [
    [[1.5, 2, 3, 4.5, 5, 6]],
    [[1, 2, 3, 4.25, 5, 6, 0, 1e1], [10, 10, 20, 10, 20, 20.5]],
    {"counts": [1, 2, 3, 3], "size": [3, 3]},
    {"size": [48, 64], "counts": [0, 48, 2976.0, 48]},
    {"size": [48, 64], "counts": ":d0b0^Ol00`k2"},
    {"counts": "``0", "size": [16, 33]},
]


def _drawn(records: list[Any]) -> list[Any]:
    """Return the records, each with another kind of mask, the last without a box."""
    masks = [record | {"segmentation": mask} for record, mask in zip(records, _DRAWN, strict=False)]
    return [*masks[:-1], {key: value for key, value in masks[-1].items() if key != "bbox"}]


SEEDS["coco-result-masks"] = [
    *_spellings(_drawn(_RESULTS * 2)),
    *_spellings(_drawn(_RESULTS * 2)[1:]),
    *SEEDS["coco-results"],
]
SEEDS["coco-truth-masks"] = [
    seed
    for first in range(4)
    for seed in _spellings(
        _TRUTH
        | {
            "annotations": [
                {**record, "segmentation": mask}
                for record, mask in zip(_TRUTH["annotations"], _DRAWN[first:], strict=False)
            ]
        }
    )
]

TOKENS["masks"] = [
    *TOKENS["json"],
    *(b'"segmentation"', b'"counts"', b'"size"', b"[3,3]", b"4294967295", b"4294967296", b"\\\\"),
    *(b"o", b"O", b"P", b"0", b"oooooo0", b"2N1O1", b"[1,2,3,4,5,6]", b"[[1,2,3,4,5,6]]", b"`"),
    *(b'{"size":[3,3],"counts":[9]}', b'{"size":[3,3],"counts":"9"}', b"\\u0030", b"[[]]"),
]

TOKENS_OF = {
    "coco-result-masks": "masks",
    "coco-truth-masks": "masks",
    "coco-results": "json",
    "coco-truth": "json",
    "voc-xml": "xml",
    "voc-text": "text",
    "cvat": "xml",
    "labelme": "json",
    **dict.fromkeys(
        ("createml", "via", "datumaro", "supervisely", "label-studio", "roboflow"), "json"
    ),
    "tfcsv": "text",
    "open-images": "text",
    "yolo-text": "text",
}
