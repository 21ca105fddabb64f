"""Files given by URL are read as those on disk."""

import gzip
import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import detap
from detap.cli import main
from detap.errors import InputError, UsageError
from detap.io.digest import sha256
from detap.io.limits import Limits
from detap.io.paths import is_url, shown
from detap.io.stream import Stream, open_regular, read_bytes
from tests.cli.conftest import Run
from tests.formats.coco_files import RESULTS, TRUTH
from tests.raised import raised

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


@pytest.fixture
def urls(memory: Any) -> tuple[str, str]:
    memory.pipe("/run/gt.json", json.dumps(TRUTH).encode())
    memory.pipe("/run/dt.json.gz", gzip.compress(json.dumps(RESULTS).encode()))
    return "memory://run/gt.json", "memory://run/dt.json.gz"


def test_what_is_a_url_and_how_it_is_shown() -> None:
    assert [is_url(path) for path in ("s3://b/k", "memory://a", "/tmp/a", "c://a", "a b://c")] == [
        *(True, True),
        *(False, False, False),
    ]
    assert shown("https://me:secret@host/a/b.json?Signature=xyz") == "https://host/a/b.json?..."
    assert shown("s3://bucket/a@b.json") == "s3://bucket/a@b.json"
    assert shown("a?b") == "a?b"


def test_json_is_read_as_from_a_disk(urls: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text(json.dumps(TRUTH))
    (tmp_path / "dt.json").write_text(json.dumps(RESULTS))
    expected = detap.read_ground_truth(tmp_path / "gt.json")
    truth = detap.read_ground_truth(urls[0])
    detections = detap.read_detections(urls[1], truth)
    for name, column in expected.columns().items():
        assert truth.columns()[name].tobytes() == column.tobytes()
    for name, column in detap.read_detections(tmp_path / "dt.json", expected).columns().items():
        assert detections.columns()[name].tobytes() == column.tobytes()
    assert truth.files[0].path == urls[0]


def test_local_files_by_url(urls: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(TRUTH))
    mine = detap.read_ground_truth(f"file://{path}")
    theirs = detap.read_ground_truth(urls[0])
    for name, column in theirs.columns().items():
        assert mine.columns()[name].tobytes() == column.tobytes()
    with pytest.raises(InputError, match=r"is a folder, expected a file"):
        read_bytes(f"file://{tmp_path}")


def test_long_files_are_read_in_blocks(memory: Any) -> None:
    content = bytes(range(256)) * (1 << 14)
    memory.pipe("/long", content)
    assert read_bytes("memory://long") == content
    with Stream("memory://long") as stream:
        assert stream.size == len(content)
        assert len(stream.read(1000)) <= 1 << 20
        file = stream.seekable()
        file.seek(-7, 2)
        assert file.read() == content[-7:]
    assert sha256("memory://long") == hashlib.sha256(content).hexdigest()


def test_limits_apply(memory: Any) -> None:
    memory.pipe("/long", bytes(5000))
    with pytest.raises(InputError, match=r"^memory://long: is larger than 4999 bytes; raise"):
        read_bytes("memory://long", Limits(file_bytes=4999))
    memory.pipe("/bomb.gz", gzip.compress(bytes(20 << 20)))
    with pytest.raises(InputError, match=r"expands to more than \d+ bytes, 200 times its size"):
        read_bytes("memory://bomb.gz")
    memory.pipe("/cut.gz", gzip.compress(bytes(5000))[:-9])
    with pytest.raises(InputError, match=r"memory://cut.gz: damaged gzip"):
        read_bytes("memory://cut.gz")


def test_failed_downloads_raise_input_error(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InputError, match=r"^memory://none.json: no such file or directory; check the URL"
    ):
        read_bytes("memory://none.json")
    with pytest.raises(UsageError, match=r"nosuch://a: cannot be opened: Protocol not known"):
        read_bytes("nosuch://a")
    memory.pipe("/a", b"12345")

    class DownError(Exception):
        pass

    def fail(*_: object, **__: object) -> None:
        raise DownError("no route to memory://a?token=secret now")

    monkeypatch.setattr(type(memory), "info", fail)
    assert str(raised(InputError, read_bytes, "memory://a?token=secret")) == (
        "memory://a?...: cannot be read: DownError: no route to memory://a?... now; check the "
        "network and the credentials"
    )

    def forbid(*_: object, **__: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(type(memory), "info", forbid)
    with pytest.raises(InputError, match=r"permission denied: PermissionError: no; check the cred"):
        read_bytes("memory://a")

    def lack(*_: object, **__: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(type(memory), "info", lack)
    with pytest.raises(UsageError, match=r"memory://a: cannot be opened: Install s3fs to access"):
        read_bytes("memory://a")


def test_a_truncated_or_changed_download(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe("/a", bytes(5 << 20))
    with Stream("memory://a") as stream:
        stream.read()
        memory.pipe("/a", bytes(6 << 20))
        with pytest.raises(InputError, match=r"memory://a: changed while it was being read"):
            stream.read_all()
    with Stream("memory://a") as stream:
        stream.read()

        def fail(*_: object) -> bytes:
            raise OSError("connection reset")

        monkeypatch.setattr(fsspec.implementations.memory.MemoryFile, "read", fail)
        with pytest.raises(InputError, match=r"memory://a: cannot be read: OSError: connection re"):
            stream.read_all()


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(UsageError, match=r"^s3://b/k: URLs need fsspec; pip install 'det"):
        read_bytes("s3://b/k")


def test_the_command_takes_urls_and_patterns_of_them(
    urls: tuple[str, str], memory: Any, command: Run, tmp_path: Path
) -> None:
    target = tmp_path / "report.json"
    call = ["eval", "--gt", urls[0], "--dt"]
    assert command(*call, urls[1], "-o", str(target)).status == 0
    whole = json.loads(target.read_text())
    assert [entry["path"] for entry in whole["inputs"]] == list(urls)
    assert [entry["sha256"] for entry in whole["inputs"]] == [
        hashlib.sha256(memory.cat(url)).hexdigest() for url in urls
    ]
    memory.pipe("/run/part/2.json", json.dumps(RESULTS[1:]).encode())
    memory.pipe("/run/part/1.json", json.dumps(RESULTS[:1]).encode())
    assert command(*call, "memory://run/part/*.json", "-o", str(target)).status == 0
    parts = json.loads(target.read_text())
    assert [entry["path"] for entry in parts["inputs"][1:]] == [
        "memory:///run/part/1.json",
        "memory:///run/part/2.json",
    ]
    assert parts["summary"] == whole["summary"]
    said = command(*call, "memory://run/none/*.json").refused()
    assert "memory://run/none/*.json: matches no file" in said
    said = command(*call, "memory://run/none.json").refused()
    assert "memory://run/none.json: no such file or directory" in said
    said = command("eval", "--gt", urls[0], "--dt", urls[0]).refused()
    assert "this is the ground-truth file" in said


def test_folders_and_images_must_be_local(urls: tuple[str, str], command: Run) -> None:
    with pytest.raises(InputError, match=r"^memory://run: is a URL, expected a local file or"):
        open_regular("memory://run")
    said = command("eval", "--format", "voc", "--gt", "memory://run", "--dt", urls[1]).refused()
    assert "memory://run: is a URL, expected a local file or folder; download it first" in said


def test_rankings_are_read_by_url_too(memory: Any, command: Run) -> None:
    memory.pipe("/qrels.txt", b"q1 0 a 1\nq1 0 b 0\n")
    memory.pipe("/run.txt", b"q1 Q0 a 1 0.9 x\nq1 Q0 b 2 0.8 x\n")
    call = ["rank", "retrieval", "--qrels", "memory://qrels.txt", "--run", "memory://run.txt"]
    assert command(*call, "--output-format", "json").report()["summary"]["mAP"] == 1.0
    said = command(*call[:-1], "memory://none.txt").refused()
    assert "memory://none.txt: no such file or directory; check the URL" in said


def test_arrays_are_read_by_url_too(memory: Any) -> None:
    from detap.formats.ranking.arrays import read_npy

    with memory.open("/a.npy", "wb") as sink:
        np.save(sink, np.arange(6.0).reshape(2, 3))
    assert read_npy("memory://a.npy").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_settings_do_not_change_urls(
    urls: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "detap.toml").write_text(f'gt = "{urls[0]}"\ndt = "{urls[1]}"\n')
    monkeypatch.chdir(tmp_path / "deep")
    assert main(["eval", "--config", "../detap.toml"]) == 0


def test_parquet_by_url(urls: tuple[str, str], memory: Any) -> None:
    pytest.importorskip("pyarrow")
    from tests.formats.arrow_files import pa, parquet, result_columns

    with memory.open("/run/dt.parquet", "wb") as sink:
        parquet.write_table(pa.table(result_columns(RESULTS)), sink)
    truth = detap.read_ground_truth(urls[0])
    mine = detap.read_detections("memory://run/dt.parquet", truth)
    for name, column in detap.read_detections(urls[1], truth).columns().items():
        assert mine.columns()[name].tobytes() == column.tobytes()
    memory.pipe("/run/dt.parquet", memory.cat("/run/dt.parquet")[:-100])
    with pytest.raises(InputError, match=r"^memory://run/dt.parquet: is damaged: "):
        detap.read_detections("memory://run/dt.parquet", truth)


def test_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a server of moto, if that and s3fs are installed."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in (
            ("AWS_ACCESS_KEY_ID", "testing"),
            ("AWS_SECRET_ACCESS_KEY", "testing"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        ):
            monkeypatch.setenv(name, value)
        system = fsspec.filesystem("s3")
        system.mkdir("bucket")
        system.pipe("bucket/run/gt.json", json.dumps(TRUTH).encode())
        system.pipe("bucket/run/dt.json.gz", gzip.compress(json.dumps(RESULTS).encode()))
        truth = detap.read_ground_truth("s3://bucket/run/gt.json")
        detections = detap.read_detections("s3://bucket/run/dt.json.gz", truth)
        assert (len(truth), len(detections)) == (len(TRUTH["annotations"]), len(RESULTS))
        with pytest.raises(
            InputError, match=r"^s3://bucket/run/none.json: no such file or directory; check"
        ):
            detap.read_ground_truth("s3://bucket/run/none.json")
        with pytest.raises(InputError, match=r"^s3://nobody/none.json: "):
            detap.read_ground_truth("s3://nobody/none.json")
    finally:
        server.stop()


def test_a_remote_file_is_opened_once_and_hashed_while_read(
    urls: tuple[str, str], memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    usual = type(memory)._open

    def counted(self: Any, path: str, *rest: Any, **more: Any) -> Any:
        opened.append(path)
        return usual(self, path, *rest, **more)

    monkeypatch.setattr(type(memory), "_open", counted)
    truth = detap.read_ground_truth(urls[0], limits=Limits(digests=True))
    detections = detap.read_detections(urls[1], truth, limits=Limits(digests=True))
    for table, name in ((truth, "/run/gt.json"), (detections, "/run/dt.json.gz")):
        assert str(table.files[0].sha256) == hashlib.sha256(memory.cat(name)).hexdigest()
        assert opened.count(name) == 1


class Http(BaseHTTPRequestHandler):
    """A server of one file that fails and redirects on request."""

    content = json.dumps(TRUTH).encode()
    asked: ClassVar[list[str]] = []

    def _answer(self) -> None:
        self.asked.append(self.command)
        goes = {"/loop.json": "/loop.json", "/file.json": "file:///etc/passwd"}
        status = {"/gt.json": 200, "/500.json": 500}.get(self.path, 404)
        self.send_response(302 if self.path in goes else status)
        self.send_header("Location", goes.get(self.path, ""))
        self.send_header("Content-Length", str(len(self.content) if status == 200 else 0))
        self.end_headers()
        if status == 200 and self.command == "GET":
            self.wfile.write(self.content)

    do_GET = do_HEAD = _answer  # noqa: N815 - their names are the library's

    def log_message(self, format: str, *args: object) -> None:
        """Do not log."""


@pytest.fixture
def server() -> Iterator[str]:
    pytest.importorskip("aiohttp", reason="aiohttp is absent: pip install 'detap[test]'")
    Http.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Http) as detections:
        thread = threading.Thread(target=detections.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{detections.server_address[1]}"
        detections.shutdown()
        thread.join()


def test_http_needs_three_requests_per_file(server: str) -> None:
    truth = detap.read_ground_truth(f"{server}/gt.json", limits=Limits(digests=True))
    assert str(truth.files[0].sha256) == hashlib.sha256(Http.content).hexdigest()
    assert Http.asked == ["HEAD", "GET", "HEAD"]  # the last says that it has not changed


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("404", "404.json: no such file or directory; check the URL"),
        ("500", "500.json: cannot be read: ClientResponseError: 500"),
        ("loop", "loop.json: cannot be read: TooManyRedirects: "),
        ("file", "file.json: cannot be read: NonHttpUrlRedirectClientError: file:///etc/passwd"),
    ],
)
def test_http_errors_are_reported(name: str, message: str, server: str) -> None:
    assert message in str(raised(InputError, detap.read_ground_truth, f"{server}/{name}.json"))
