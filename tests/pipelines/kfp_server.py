"""A server that speaks as much of Kubeflow's API v2beta1 as voxveil uses, and takes nothing it does not know.

Bodies are held against the models of kfp_server_api: an unknown key or a value of another type is refused,
where a real server would drop it silently. Uploaded files are parsed by Kubeflow's own protobuf messages.
"""

from __future__ import annotations

import email
import email.policy
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import kfp_server_api
import yaml

API = "/apis/v2beta1"
#: Few, so that every list is read page by page.
PAGE = 2
CREATED = "2026-11-30T03:00:00Z"


class Refused(Exception):
    """An answer that is an error: status and message."""


def parse(content: Any, kind: str, where: str = "body") -> Any:
    """Hold JSON against a type of kfp_server_api (``V2beta1Run``, ``list[str]``, ``object``)."""
    inner = re.fullmatch(r"(list|dict)(?:\[|\(str, )(.+)[\])]", kind)
    if inner and inner[1] == "list":
        wants(isinstance(content, list), where, "a list", content)
        return [parse(item, inner[2], where) for item in content]
    if inner:
        wants(isinstance(content, dict), where, "an object", content)
        return {name: parse(item, inner[2], f"{where}.{name}") for name, item in content.items()}
    plain = {"str": str, "bool": bool, "int": int, "float": float, "datetime": str}
    if kind in plain:
        wants(type(content) is plain[kind], where, kind, content)
        return content
    if kind == "object":
        return content
    model = getattr(kfp_server_api, kind)
    allowed = getattr(model, "allowable_values", None)
    if allowed is None and not model.openapi_types:
        allowed = [value for name, value in vars(model).items() if name.isupper()]
    if allowed:
        wants(content in allowed, where, f"one of {allowed}", content)
        return content
    wants(isinstance(content, dict), where, "an object", content)
    names = {json_name: name for name, json_name in model.attribute_map.items()}
    for name in content:
        wants(name in names, where, f"known keys {sorted(names)}", name)
    values = {
        names[key]: parse(item, model.openapi_types[names[key]], f"{where}.{key}")
        for key, item in content.items()
    }
    model(**values)
    return content


def wants(good: bool, where: str, wanted: str, got: Any) -> None:
    """Refuse what is not good."""
    if not good:
        raise Refused(400, f"{where}: must be {wanted}, got {got!r}")


class Server(ThreadingHTTPServer):
    """The server and all it holds.

    Attributes:
        experiments, pipelines, versions, runs, schedules: Items by id.
        uploads: Text of each version by id.
        calls: Method and path of every request, in order.
        faults: Answers (status, message) to give instead, by ``METHOD PATH``.
        token: Bearer token that callers must show.
        namespace: Namespace that callers must name, where there is one.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.experiments: dict[str, dict[str, Any]] = {}
        self.pipelines: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, dict[str, Any]] = {}
        self.uploads: dict[str, str] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.schedules: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.faults: dict[str, tuple[int, str]] = {}
        self.token = ""
        self.namespace = ""
        self.count = 0

    @property
    def url(self) -> str:
        """Its address, below a path as behind a gateway."""
        return f"http://127.0.0.1:{self.server_port}/pipeline"

    def new_id(self, what: str) -> str:
        """Return an id that nothing else has."""
        self.count += 1
        return f"{what}-{self.count}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer a GET."""
        self.answer()

    def do_POST(self) -> None:
        """Answer a POST."""
        self.answer()

    def do_DELETE(self) -> None:
        """Answer a DELETE."""
        self.answer()

    def answer(self) -> None:
        """Answer any request with JSON."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, content = 200, self.route(body)
        except Refused as refusal:
            status, message = refusal.args
            content = {"code": 3, "message": message, "error": message}
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def route(self, body: bytes) -> dict[str, Any]:
        """Find what is asked for and do it."""
        parts = urlsplit(self.path)
        path = unquote(parts.path.removeprefix("/pipeline"))
        self.server.calls.append(f"{self.command} {path.removeprefix(API)}")
        if self.server.calls[-1] in self.server.faults:
            raise Refused(*self.server.faults[self.server.calls[-1]])
        if self.server.token and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            raise Refused(401, "unauthorized")
        if not path.startswith(API):
            raise Refused(404, "Not Found")
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        for pattern, name in ROUTES.items():
            match = re.fullmatch(pattern, f"{self.command} {path.removeprefix(API)}")
            if match:
                return getattr(self, name)(*match.groups(), query=query, body=body)
        raise Refused(404, f"no such method: {self.command} {path}")

    def body(self, body: bytes, model: str) -> dict[str, Any]:
        """Return the JSON body, held against a model."""
        return parse(json.loads(body), model)

    def listed(self, field: str, items: Any, query: dict[str, str], *allowed: str) -> dict[str, Any]:
        """Return one page of items, newest first where asked for."""
        known = {"page_size", "page_token", "filter", "sort_by", *allowed}
        wants(set(query) <= known, "query", f"{sorted(known)}", sorted(query))
        if "namespace" in allowed and self.server.namespace:
            wants(
                query.get("namespace") == self.server.namespace, "namespace", "given", query.get("namespace")
            )
        chosen = list(items)
        if query.get("sort_by", "").endswith(" desc"):
            chosen.reverse()
        if "filter" in query:
            (predicate,) = json.loads(query["filter"])["predicates"]
            wants(set(predicate) == {"operation", "key", "stringValue"}, "filter", "one text", predicate)
            wants(predicate["operation"] == "EQUALS", "filter", "EQUALS", predicate["operation"])
            chosen = [item for item in chosen if item[predicate["key"]] == predicate["stringValue"]]
        if "experiment_id" in query:
            chosen = [item for item in chosen if item["experiment_id"] == query["experiment_id"]]
        start = int(query.get("page_token", 0))
        end = start + min(PAGE, int(query.get("page_size", PAGE)))
        page: dict[str, Any] = {"total_size": len(chosen)}
        if chosen[start:end]:
            page[field] = chosen[start:end]
        if end < len(chosen):
            page["next_page_token"] = str(end)
        return page

    def list_experiments(self, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """List."""
        return self.listed("experiments", self.server.experiments.values(), query, "namespace")

    def create_experiment(self, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Make one."""
        item = self.body(body, "V2beta1Experiment")
        wants(item.get("namespace", "") == self.server.namespace, "namespace", self.server.namespace, item)
        return self.keep(self.server.experiments, "experiment", item)

    def pipeline_by_name(self, name: str, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Find one."""
        for item in self.server.pipelines.values():
            if item["name"] == name:
                return item
        raise Refused(404, f"pipeline {name} not found")

    def create_pipeline(self, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Make one without a version."""
        item = self.body(body, "V2beta1Pipeline")
        wants(re.fullmatch(r"[a-z0-9-]+", item["name"]) is not None, "name", "a DNS label", item["name"])
        return self.keep(self.server.pipelines, "pipeline", item)

    def list_versions(self, pipeline: str, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """List."""
        found = [item for item in self.server.versions.values() if item["pipeline_id"] == pipeline]
        return self.listed("pipeline_versions", found, query)

    def upload_version(self, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Take a compiled file."""
        wants(set(query) <= {"name", "pipelineid", "description"}, "query", "known names", sorted(query))
        wants(query["pipelineid"] in self.server.pipelines, "pipelineid", "known", query["pipelineid"])
        for item in self.server.versions.values():
            if (item["pipeline_id"], item["name"]) == (query["pipelineid"], query["name"]):
                raise Refused(409, f"version {query['name']} exists")
        text = uploaded(self.headers["Content-Type"], body)
        check_pipeline(text)
        item = {"pipeline_id": query["pipelineid"], "name": query["name"], "display_name": query["name"]}
        made = self.keep(self.server.versions, "pipeline_version", item)
        self.server.uploads[made["pipeline_version_id"]] = text
        return made

    def get_version(self, pipeline: str, version: str, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Show one with its file; a second document makes an object of both."""
        item = self.known(self.server.versions, version)
        wants(item["pipeline_id"] == pipeline, "pipeline_id", item["pipeline_id"], pipeline)
        documents = list(yaml.safe_load_all(self.server.uploads[version]))
        both = dict(zip(("pipeline_spec", "platform_spec"), documents))
        return item | {"pipeline_spec": both if len(documents) == 2 else documents[0]}

    def list_runs(self, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """List."""
        return self.listed("runs", self.server.runs.values(), query, "experiment_id", "namespace")

    def create_run(self, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Start one."""
        item = self.body(body, "V2beta1Run")
        self.check_start(item)
        return self.keep(self.server.runs, "run", item | {"state": "PENDING"})

    def get_run(self, run: str, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Show one."""
        return self.known(self.server.runs, run)

    def terminate_run(self, run: str, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Stop one."""
        self.known(self.server.runs, run)["state"] = "CANCELING"
        return {}

    def list_schedules(self, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """List."""
        items = self.server.schedules.values()
        # The one list whose key is not in snake case.
        return self.listed("recurringRuns", items, query, "experiment_id", "namespace")

    def create_schedule(self, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Make one."""
        item = self.body(body, "V2beta1RecurringRun")
        self.check_start(item)
        cron = item["trigger"]["cron_schedule"]["cron"]
        wants(len(cron.split()) == 6, "cron", "6 fields", cron)
        wants(item["max_concurrency"].isdigit(), "max_concurrency", "1-10", item["max_concurrency"])
        wants(1 <= int(item["max_concurrency"]) <= 10, "max_concurrency", "1-10", item["max_concurrency"])
        wants(item["mode"] in ("ENABLE", "DISABLE"), "mode", "ENABLE or DISABLE", item["mode"])
        on = "ENABLED" if item.pop("mode") == "ENABLE" else "DISABLED"
        return self.keep(self.server.schedules, "recurring_run", item | {"status": on})

    def switch_schedule(self, schedule: str, what: str, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Switch one on or off."""
        self.known(self.server.schedules, schedule)["status"] = f"{what.upper()}D"
        return {}

    def delete_schedule(self, schedule: str, query: dict[str, str], body: bytes) -> dict[str, Any]:
        """Delete one."""
        self.known(self.server.schedules, schedule)
        del self.server.schedules[schedule]
        return {}

    def check_start(self, item: dict[str, Any]) -> None:
        """Refuse what names an unknown experiment or version, or gives unknown arguments."""
        self.known(self.server.experiments, item["experiment_id"])
        reference = item["pipeline_version_reference"]
        version = self.known(self.server.versions, reference["pipeline_version_id"])
        wants(
            version["pipeline_id"] == reference["pipeline_id"],
            "pipeline_id",
            version["pipeline_id"],
            reference,
        )
        spec = yaml.safe_load(self.server.uploads[version["pipeline_version_id"]].split("\n---\n")[0])
        inputs = spec["root"].get("inputDefinitions", {}).get("parameters", {})
        given = item["runtime_config"].get("parameters", {})
        wants(set(given) <= set(inputs), "parameters", f"{sorted(inputs)}", sorted(given))

    def known(self, items: dict[str, Any], name: str) -> Any:
        """Return one item."""
        if name not in items:
            raise Refused(404, f"{name} not found")
        return items[name]

    def keep(self, items: dict[str, Any], kind: str, item: dict[str, Any]) -> dict[str, Any]:
        """Keep a new item under an id of its own."""
        made = self.server.new_id(kind)
        items[made] = item | {f"{kind}_id": made, "created_at": CREATED}
        return items[made]


ROUTES = {
    r"GET /experiments": "list_experiments",
    r"POST /experiments": "create_experiment",
    r"GET /pipelines/names/([^/]+)": "pipeline_by_name",
    r"POST /pipelines": "create_pipeline",
    r"GET /pipelines/([^/]+)/versions": "list_versions",
    r"GET /pipelines/([^/]+)/versions/([^/]+)": "get_version",
    r"POST /pipelines/upload_version": "upload_version",
    r"GET /runs": "list_runs",
    r"POST /runs": "create_run",
    r"GET /runs/([^/:]+)": "get_run",
    r"POST /runs/([^/:]+):terminate": "terminate_run",
    r"GET /recurringruns": "list_schedules",
    r"POST /recurringruns": "create_schedule",
    r"POST /recurringruns/([^/:]+):(enable|disable)": "switch_schedule",
    r"DELETE /recurringruns/([^/:]+)": "delete_schedule",
}


def uploaded(content_type: str, body: bytes) -> str:
    """Return the one file of a multipart body."""
    message = email.message_from_bytes(
        f"Content-Type: {content_type}\r\n\r\n".encode() + body, policy=email.policy.default
    )
    (part,) = message.iter_parts()
    assert part.get_filename().endswith(".yaml")
    return part.get_payload(decode=True).decode()


def check_pipeline(text: str) -> None:
    """Parse both documents as Kubeflow's server does, unknown fields refused."""
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    first, second = yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    json_format.ParseDict(first, pipeline_spec_pb2.PipelineSpec())
    json_format.ParseDict(second, pipeline_spec_pb2.PlatformSpec())


@contextmanager
def serving() -> Iterator[Server]:
    """Yield a running server."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
