"""The register of releases on a real S3 server: nothing lost, nothing overwritten, nothing without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from voxveil.privacy.register import open_register
from voxveil.runtime.errors import PrivacyError

pytestmark = pytest.mark.services


@pytest.fixture
def bucket(s3, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    if "register" not in {bucket["Name"] for bucket in s3.client().list_buckets()["Buckets"]}:
        s3.client().create_bucket(Bucket="register")
    return "s3://register/releases"


def test_objects_are_written_once_and_read_back(bucket: str) -> None:
    register = open_register(bucket)
    register.create("a" * 32, b"{}")
    assert register.read_all()["a" * 32] == b"{}"
    with pytest.raises(PrivacyError):
        register.create("a" * 32, b"{1}")
    assert register.read_all()["a" * 32] == b"{}"


def test_eight_writers_lose_nothing(bucket: str) -> None:
    code = (
        "import sys\nfrom voxveil.privacy.register import open_register\n"
        "register = open_register(sys.argv[1])\n"
        "for i in range(5): register.create(f'{int(sys.argv[2]):016x}{i:016x}', b'{}')\n"
    )
    location = f"{bucket}-many"
    running = [subprocess.Popen([sys.executable, "-c", code, location, str(n)]) for n in range(1, 9)]
    assert [process.wait() for process in running] == [0] * 8
    assert len(open_register(location).names()) == 40


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AWS_SECRET_ACCESS_KEY", "wrong"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:9")],
)
def test_a_register_out_of_reach_is_one_line(
    bucket: str, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(PrivacyError) as error:
        open_register(bucket).create("b" * 32, b"{}")
    assert "\n" not in str(error.value)
    assert "s3://register" in str(error.value) or "127.0.0.1" in str(error.value)
