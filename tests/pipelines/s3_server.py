"""A server that speaks as much of S3 as the tests of this folder need."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class Store(ThreadingHTTPServer):
    """As much of S3 as is needed here: ListObjectsV2 in pages of two, GET, HEAD and PUT."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Store

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.server.requests.append(self.path)
        if "list-type" in url.query:
            self._answer(200, self._listing(parse_qs(url.query)).encode())
            return
        body = self.server.objects.get(unquote(url.path).lstrip("/"))
        self._answer(404 if body is None else 200, body or b"")

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.objects[unquote(urlsplit(self.path).path).lstrip("/")] = body
        self._answer(200, b"")

    def _listing(self, query: dict[str, list[str]]) -> str:
        bucket = unquote(urlsplit(self.path).path).strip("/")
        prefix = f"{bucket}/{query['prefix'][0]}"
        keys = sorted(key for key in self.server.objects if key.startswith(prefix))
        start = int(query.get("continuation-token", ["0"])[0])
        page, more = keys[start : start + 2], start + 2 < len(keys)
        contents = "".join(
            f"<Contents><Key>{escape(key[len(bucket) + 1 :])}</Key></Contents>" for key in page
        )
        token = f"<NextContinuationToken>{start + 2}</NextContinuationToken>" if more else ""
        truncated = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        return f"<ListBucketResult>{truncated}{token}{contents}</ListBucketResult>"

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass
