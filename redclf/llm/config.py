"""Configs of judges: one YAML file an endpoint, or `MODEL@BASE_URL`."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from redclf.errors import RedclfError

DEFAULT = "default"
NO_POLICY = "no-policy"
FEW_SHOT = "few-shot"
ORACLE_PLAN = "oracle-plan"
#: What the judge is told beside the trajectory.
SETTINGS = (DEFAULT, NO_POLICY, FEW_SHOT, ORACLE_PLAN)
#: How endpoints name the greatest number of output tokens.
OUTPUT_FIELDS = ("max_tokens", "max_completion_tokens")

# Greedy, since a model's name may hold an @, too.
_INLINE = re.compile(r"(?P<model>.+)@(?P<url>https?://.+)")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


class ConfigError(RedclfError):
    """A config that can't be used; its message never quotes a value that may be a key."""


@dataclass(frozen=True)
class EndpointConfig:
    """What judges of all kinds have in common.

    Parameters
    ----------
    model : str
        The model's name at the endpoint.
    base_url : str
        Root of the API.
    name : str
        Name in tables; the model's, and the setting's where it is not the default, if empty.
    key : str
        Environment variable of the key. Where none is named, the SDK's usual one is used if it is set.
    timeout : float
        Seconds that an endpoint may stay silent.
    concurrency : int
        Requests under way at a time.
    retries : int
        Attempts after the first one.
    backoff : float
        Seconds before the first retry, doubled with each further one up to 30; `Retry-After` goes before it.
    prices : str
        File of prices, relative to the config.
    path : str
        File that it was read from.
    """

    model: str
    base_url: str
    name: str = ""
    key: str = ""
    timeout: float = 600.0
    concurrency: int = 8
    retries: int = 6
    backoff: float = 0.5
    prices: str = ""
    path: str = ""

    @property
    def label(self) -> str:
        """Name in tables."""
        return self.name or self.model

    @property
    def log_name(self) -> str:
        """Name of the request log: the same for the same model at the same endpoint in the same setting."""
        digest = hashlib.sha256(f"{self.model}\n{self.base_url}\n{self._variant}".encode()).hexdigest()[:8]
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', self.model)[:60]}-{digest}.jsonl"

    @property
    def _variant(self) -> str:
        return ""

    def price_file(self) -> Path | None:
        """Return the file of prices that the config names."""
        return Path(self.path).parent / self.prices if self.prices else None


@dataclass(frozen=True)
class LLMConfig(EndpointConfig):
    """An OpenAI-compatible endpoint. The numbers are those of the paper's table 6.

    Parameters
    ----------
    setting : str
        One of `SETTINGS`.
    exemplars : int
        Number of exemplars in the few-shot setting.
    exemplar_data : str
        Benchmark folder that they are drawn from, relative to the config; the judged data's other folds if empty.
    temperature : float or None
        None leaves it out, for endpoints that refuse it.
    max_output_tokens : int
    output_field : str
        One of `OUTPUT_FIELDS`.
    extra : mapping
        Further fields of the request, such as the endpoint's thinking controls.
    """

    setting: str = DEFAULT
    exemplars: int = 4
    exemplar_data: str = ""
    temperature: float | None = 0.0
    max_output_tokens: int = 32768
    output_field: str = OUTPUT_FIELDS[0]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name in tables."""
        return self.name or (self.model if self.setting == DEFAULT else f"{self.model} ({self.setting})")

    @property
    def _variant(self) -> str:
        return self.setting


@dataclass(frozen=True)
class JevConfig(EndpointConfig):
    """Jev. The model and the 16 questions are those of the paper's table 7.

    Parameters
    ----------
    max_questions : int
        Questions of one request at most.
    max_bytes : int
        Bytes of UTF-8 up to which questions are packed into one request. A single question that is longer goes alone,
        and nothing is cut.
    threshold : float
        Least probability of redundancy that `detect` reports.
    """

    model: str = "jev-1.13.0"
    base_url: str = "https://api.typesafe.ai"
    max_questions: int = 16
    max_bytes: int = 400_000
    threshold: float = 0.5


ConfigT = TypeVar("ConfigT", bound=EndpointConfig)


def load_config(kind: type[ConfigT], text: str) -> ConfigT:
    """Return the config that a detector's name gives after `llm:` or `jev:`.

    Parameters
    ----------
    kind : type
        `LLMConfig` or `JevConfig`.
    text : str
        Path of a YAML file, or `MODEL@BASE_URL`.

    Raises
    ------
    ConfigError
        If there is no such file, or a value in it can't be used.
    """
    inline = _INLINE.fullmatch(text)
    if inline:
        return _build(kind, {"model": inline["model"], "base_url": inline["url"]}, "MODEL@BASE_URL", "")
    path = Path(text)
    if not text or not path.is_file():
        raise ConfigError(f"expected MODEL@BASE_URL or a YAML config, found no file {text!r}")
    return _build(kind, read_yaml(path), str(path), str(path))


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds an object.

    Raises
    ------
    ConfigError
        If it can't be read, or PyYAML is missing.
    """
    try:
        import yaml
    except ImportError:
        raise ConfigError(f"{path}: expected the llm extra, PyYAML missing; run: pip install 'redclf[llm]'") from None
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1})"
        raise ConfigError(f"{path}: expected YAML in UTF-8{where}") from None
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ConfigError(f"{path}: expected an object of named values")
    return value


def _build(kind: type[ConfigT], values: Mapping[str, Any], where: str, path: str) -> ConfigT:
    known = {item.name for item in fields(kind)} - {"path"}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ConfigError(f"{where}: expected fields among {', '.join(sorted(known))}, got {', '.join(unknown)}")
    required = {"model", "base_url"} if kind is LLMConfig else set()
    for name in sorted(required - set(values)):
        raise ConfigError(f"{where}: expected a value, got nothing: {name}")
    given: dict[str, Any] = {}
    for name, value in values.items():
        expected, check = _CHECKS[name]
        if not check(value):
            raise ConfigError(f"{where}: {name}: expected {expected}")
        given[name] = value
    if "base_url" in given:
        given["base_url"] = given["base_url"].rstrip("/")
    return kind(**given, path=path)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_url(value: Any) -> bool:
    if not _is_text(value):
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    hidden = parts.username or parts.password or parts.query or parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not hidden


_TEXT = ("a text", _is_text)
_COUNT = ("a whole number from 1", _is_count)
_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "model": _TEXT,
    "name": _TEXT,
    "prices": _TEXT,
    "exemplar_data": _TEXT,
    "base_url": ("an http or https address without a user, password or query in it", _is_url),
    "key": (
        "the name of an environment variable, in capitals (the key itself never stands in a config)",
        lambda value: isinstance(value, str) and _VARIABLE.fullmatch(value) is not None,
    ),
    "timeout": ("seconds above 0", lambda value: _is_number(value) and value > 0),
    "concurrency": _COUNT,
    "retries": ("a whole number from 0", lambda value: _is_count(value, 0)),
    "backoff": ("seconds from 0", lambda value: _is_number(value) and value >= 0),
    "setting": (f"one of {', '.join(SETTINGS)}", lambda value: value in SETTINGS),
    "exemplars": _COUNT,
    "temperature": ("a number from 0, or null", lambda value: value is None or (_is_number(value) and value >= 0)),
    "max_output_tokens": _COUNT,
    "output_field": (f"one of {', '.join(OUTPUT_FIELDS)}", lambda value: value in OUTPUT_FIELDS),
    "extra": (
        "an object of further request fields",
        lambda value: isinstance(value, dict) and not {"model", "messages", "stream"} & set(value),
    ),
    "max_questions": _COUNT,
    "max_bytes": _COUNT,
    "threshold": ("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1),
}
