"""Client of a Kubeflow Pipelines server (API v2beta1) with retries for a minute.

``KFP_ENDPOINT`` names the server (with a path, where it is behind one), ``KFP_NAMESPACE`` the profile
on a server of several users, ``KFP_TOKEN`` or the file ``KFP_TOKEN_FILE`` the bearer token, and
``SSL_CERT_FILE`` another set of certificate authorities.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from voxveil.runtime.errors import InputError, VoxveilError, import_extra, one_line

__all__ = ["Endpoint", "KubeflowError", "Server", "find_endpoint"]

#: Seconds to connect and to answer. An upload of a pipeline is a matter of seconds.
_TIMEOUT = (10, 60)
_PAGE = 100


class KubeflowError(VoxveilError):
    """The Kubeflow server is unreachable or rejects a request."""

    exit_code = 1


@dataclass(frozen=True)
class Endpoint:
    """Address and credentials of the server.

    Attributes:
        url: Address without a slash at the end; may hold no credentials.
        namespace: Profile of a server of several users, empty elsewhere.
        token: Bearer token, empty for none; not shown by ``repr``.
        authorities: File of certificate authorities, empty for the usual ones.
    """

    url: str
    namespace: str = ""
    token: str = field(default="", repr=False)
    authorities: str = ""


def find_endpoint(environ: Mapping[str, str] | None = None) -> Endpoint:
    """Return the endpoint that the environment names.

    Raises:
        InputError: There is none, or it is no HTTP address.
    """
    env = os.environ if environ is None else environ
    url = env.get("KFP_ENDPOINT", "").rstrip("/")
    if not url:
        raise InputError(
            "KFP_ENDPOINT is not set: the address of Kubeflow Pipelines, such as https://HOST/pipeline"
        )
    parts = urlsplit(url)
    if "@" in parts.netloc:
        shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        raise InputError(f"KFP_ENDPOINT {shown}: must hold no user or password; set KFP_TOKEN")
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise InputError(f"KFP_ENDPOINT {url!r}: must be http://HOST or https://HOST, with or without a path")
    token, file = env.get("KFP_TOKEN", ""), env.get("KFP_TOKEN_FILE", "")
    if file and not token:
        try:
            token = Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(f"KFP_TOKEN_FILE {file}: {error.strerror}") from None
    return Endpoint(url, env.get("KFP_NAMESPACE", ""), token, env.get("SSL_CERT_FILE", ""))


class Server:
    """The calls voxveil makes; every fault becomes a :class:`KubeflowError`.

    Attributes:
        endpoint: Where it is.
        api: The module ``kfp_server_api``, whose models calls take and return.

    Args:
        endpoint: Where it is.
        backoff: Seconds between tries of a read, doubled each time.
    """

    def __init__(self, endpoint: Endpoint, *, backoff: float = 0.5) -> None:
        kfp_server_api = import_extra("kfp_server_api", "pipeline", "kfp")
        import urllib3

        self.endpoint = endpoint
        self.api: Any = kfp_server_api
        settings = kfp_server_api.Configuration(host=endpoint.url)
        settings.ssl_ca_cert = endpoint.authorities or None
        # Only reading is tried again: a second start of a run would be a second run.
        settings.retries = urllib3.Retry(
            total=3,
            redirect=False,
            backoff_factor=backoff,
            status_forcelist=(429, 502, 503, 504),
            allowed_methods={"GET"},
            raise_on_status=False,
        )
        self._client = client = kfp_server_api.ApiClient(settings)
        if endpoint.token:
            client.set_default_header("Authorization", f"Bearer {endpoint.token}")
        self._experiments = kfp_server_api.ExperimentServiceApi(client)
        self._pipelines = kfp_server_api.PipelineServiceApi(client)
        self._uploads = kfp_server_api.PipelineUploadServiceApi(client)
        self._runs = kfp_server_api.RunServiceApi(client)
        self._schedules = kfp_server_api.RecurringRunServiceApi(client)

    def experiment_id(self, name: str, *, make: bool) -> str:
        """Return the id of an experiment; empty if it does not exist and ``make`` is false."""
        found = self._named(self._experiments.experiment_service_list_experiments, "experiments", name)
        for experiment in found:
            return str(experiment.experiment_id)
        if not make:
            return ""
        body = self.api.V2beta1Experiment(display_name=name, namespace=self.endpoint.namespace or None)
        created = self._call(self._experiments.experiment_service_create_experiment, body)
        return str(created.experiment_id)

    def pipeline_version(self, name: str, version: str, file: Path, description: str) -> tuple[str, str]:
        """Return (pipeline, version) ids of a compiled file, uploaded unless the version exists.

        Args:
            name: Name of the pipeline.
            version: Name of the version; equal names mean equal files.
            file: The compiled file, ``.yaml``.
            description: One line for people.
        """
        by_name = self._pipelines.pipeline_service_get_pipeline_by_name
        pipeline = self._call(by_name, name, absent=True, **self._space())
        if pipeline is None:
            body = self.api.V2beta1Pipeline(name=name, display_name=name, **self._space())
            pipeline = self._call(self._pipelines.pipeline_service_create_pipeline, body)
        else:
            versions = self._pipelines.pipeline_service_list_pipeline_versions
            for known in self._pages(versions, "pipeline_versions", pipeline.pipeline_id):
                if version in (known.name, known.display_name):
                    return str(pipeline.pipeline_id), str(known.pipeline_version_id)
        uploaded = self._call(
            self._uploads.upload_pipeline_version,
            str(file),
            name=version,
            pipelineid=pipeline.pipeline_id,
            description=description,
        )
        return str(pipeline.pipeline_id), str(uploaded.pipeline_version_id)

    def compiled(self, pipeline_id: str, version_id: str) -> Any | None:
        """Return the compiled file of a version as objects, None if the version does not exist."""
        get = self._pipelines.pipeline_service_get_pipeline_version
        found = self._call(get, pipeline_id, version_id, absent=True)
        return None if found is None else found.pipeline_spec

    def start(self, run: Any) -> Any:
        """Start a run (``V2beta1Run``) and return it."""
        return self._call(self._runs.run_service_create_run, run)

    def run(self, run_id: str) -> Any | None:
        """Return a run, None if the id does not exist."""
        return self._call(self._runs.run_service_get_run, run_id, absent=True)

    def runs(self, experiment_id: str, name: str = "", limit: int = _PAGE) -> list[Any]:
        """Return the newest runs of an experiment, those called ``name`` where one is given."""
        more = {"experiment_id": experiment_id, "sort_by": "created_at desc"}
        found = self._named(self._runs.run_service_list_runs, "runs", name, **more)
        return [run for run, _ in zip(found, range(limit))]

    def terminate(self, run_id: str) -> None:
        """Stop a run."""
        self._call(self._runs.run_service_terminate_run, run_id)

    def create_schedule(self, schedule: Any) -> Any:
        """Create a recurring run (``V2beta1RecurringRun``) and return it."""
        return self._call(self._schedules.recurring_run_service_create_recurring_run, schedule)

    def schedules(self, experiment_id: str, name: str = "") -> list[Any]:
        """Return the recurring runs of an experiment, those called ``name`` where one is given."""
        list_all = self._schedules.recurring_run_service_list_recurring_runs
        return list(self._named(list_all, "recurring_runs", name, experiment_id=experiment_id))

    def enable_schedule(self, schedule_id: str, enabled: bool) -> None:
        """Switch a recurring run on or off."""
        action = "enable" if enabled else "disable"
        self._call(getattr(self._schedules, f"recurring_run_service_{action}_recurring_run"), schedule_id)

    def delete_schedule(self, schedule_id: str) -> None:
        """Delete a recurring run; runs it started go on."""
        self._call(self._schedules.recurring_run_service_delete_recurring_run, schedule_id, absent=True)

    def _space(self) -> dict[str, str]:
        return {"namespace": self.endpoint.namespace} if self.endpoint.namespace else {}

    def _named(self, function: Callable[..., Any], field: str, name: str, **more: Any) -> Iterator[Any]:
        """Yield items whose name is ``name`` (any, where it is empty); the server's filter is not trusted."""
        if name:
            predicate = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
            more["filter"] = json.dumps({"predicates": [predicate]})
        for item in self._pages(function, field, **more, **self._space()):
            if not name or item.display_name == name:
                yield item

    def _pages(self, function: Callable[..., Any], field: str, *args: Any, **more: Any) -> Iterator[Any]:
        token = ""
        while True:
            page = self._call(function, *args, page_size=_PAGE, page_token=token or None, **more)
            yield from getattr(page, field) or ()
            token = page.next_page_token or ""
            if not token:
                return

    def _call(self, function: Callable[..., Any], *args: Any, absent: bool = False, **more: Any) -> Any:
        """Call the server; None if the requested object does not exist and ``absent`` allows it."""
        import urllib3

        given = {name: value for name, value in more.items() if value is not None}
        try:
            answer = function(*args, **given, _request_timeout=_TIMEOUT)
            # kfp_server_api reads a login page as an item without a single field.
            if not isinstance(json.loads(self._client.last_response.data), dict):
                raise ValueError("not an object")
            return answer
        except self.api.ApiException as error:
            if absent and error.status == 404:
                return None
            raise KubeflowError(f"Kubeflow at {self.endpoint.url}: {_refusal(error)}") from None
        except urllib3.exceptions.HTTPError as error:
            reason = self._redacted(getattr(error, "reason", None) or error)
            raise KubeflowError(f"Kubeflow at {self.endpoint.url}: cannot be reached ({reason})") from None
        except (AttributeError, TypeError, ValueError) as error:
            raise KubeflowError(
                f"Kubeflow at {self.endpoint.url}: the answer is not that of the API v2beta1"
                f" ({self._redacted(error)}); is the address right, and KFP_TOKEN set?"
            ) from None

    def _redacted(self, error: object) -> str:
        text = str(error)
        return one_line(text.replace(self.endpoint.token, "***") if self.endpoint.token else text, 160)


def _refusal(error: Any) -> str:
    """Return a server's message in one line."""
    if 300 <= error.status < 400 or error.status in (401, 403):
        return (
            f"refuses the caller ({error.status} {error.reason}); set KFP_TOKEN, and KFP_NAMESPACE if need be"
        )
    try:
        content = json.loads(error.body or "")
    except ValueError:
        content = {}
    said = content.get("message") or content.get("error") if isinstance(content, dict) else None
    return f"{error.status} {one_line(said or error.reason)}"
