"""Secrets by name: where each comes from, and that nothing shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.actors.config import Credentials
from greenroom.protocol.errors import ConfigError

SECRET = "sk-Vq9-not-for-your-eyes"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "credentials.toml"
    file.write_text(f'A = "{SECRET}"\nB = "of the file"\nEMPTY = ""\n')
    file.chmod(0o600)
    return file


def test_the_environment_comes_before_the_file_and_what_is_empty_is_absent(file: Path) -> None:
    credentials = Credentials(file, environment={"B": "of the environment", "A": "", "C": ""})
    assert credentials["A"] == SECRET
    assert credentials["B"] == "of the environment"
    assert [name for name in ("A", "B", "C", "EMPTY", "D") if name in credentials] == ["A", "B"]
    assert (credentials.get("EMPTY"), credentials.get("D", "")) == (None, "")
    assert sorted(credentials) == ["A", "B"]
    assert [credentials.describe(name) for name in ("A", "B", "EMPTY", "D")] == ["file", "environment", None, None]


def test_each_is_looked_up_when_it_is_asked_for(file: Path) -> None:
    environment: dict[str, str] = {}
    credentials = Credentials(file, environment=environment)
    assert "D" not in credentials
    file.write_text('D = "later"')
    assert credentials["D"] == "later"
    environment["D"] = "latest"
    assert credentials["D"] == "latest"


def test_no_repr_and_no_error_shows_a_secret(file: Path) -> None:
    credentials = Credentials(file, environment={"X": SECRET})
    assert SECRET not in repr(credentials)
    with pytest.raises(KeyError) as missing:
        credentials[f"{SECRET}_as_a_name"]
    assert SECRET not in f"{missing.value!r}"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (f'A = "{SECRET}"', 0o644, "chmod 600"),
        (f'A = "{SECRET}"', 0o620, "chmod 600"),
        (f'A = {{ value = "{SECRET}" }}', 0o600, "A is no text"),
        (f'A = "{SECRET}', 0o600, "is no TOML"),
        (None, 0o600, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_one_of_credentials_is_refused_without_its_secrets(
    tmp_path: Path, text: str | None, mode: int, said: str
) -> None:
    file = tmp_path / "credentials.toml"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(ConfigError, match=said) as refused:
        Credentials(file, environment={}).get("A")
    assert SECRET not in refused.value.message
