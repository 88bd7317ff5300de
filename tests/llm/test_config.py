from __future__ import annotations

from pathlib import Path

import pytest

from redclf.llm.config import ConfigError, JevConfig, LLMConfig, load_config
from redclf.llm.prices import load_prices

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "llm"


def written(tmp_path, text):
    path = tmp_path / "judge.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_model_at_url_is_a_config_with_nothing_but_these_two():
    config = load_config(LLMConfig, "@cf/some/model@https://host:8000/v1/")
    assert config == LLMConfig("@cf/some/model", "https://host:8000/v1")
    assert (config.temperature, config.max_output_tokens, config.timeout) == (0, 32768, 600)
    assert config.label == "@cf/some/model"


def test_the_log_is_named_by_model_and_endpoint_without_odd_characters():
    names = {load_config(LLMConfig, f"{model}@{url}").log_name for model in "ab" for url in ("http://x", "http://y")}
    assert len(names) == 4
    assert "/" not in LLMConfig("../../a b", "http://x").log_name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: m", "expected a value, got nothing: base_url"),
        ("model: m\nbase_url: http://x\ntemprature: 0", "got temprature"),
        ("model: m\nbase_url: ftp://x", "base_url: expected an http"),
        ("model: m\nbase_url: http://user:sk-verysecret@host", "without a user, password or query"),
        ("model: m\nbase_url: http://host/v1?key=sk-verysecret", "without a user, password or query"),
        ("model: m\nbase_url: http://x\nkey: sk-verysecret", "key: expected the name of an environment variable"),
        ("model: m\nbase_url: http://x\napi_key: sk-verysecret", "got api_key"),
        ("model: m\nbase_url: http://x\nretries: true", "retries: expected a whole number"),
        ("model: m\nbase_url: http://x\nconcurrency: 0", "concurrency: expected a whole number from 1"),
        ("model: m\nbase_url: http://x\ntimeout: .nan", "timeout: expected seconds"),
        ("model: m\nbase_url: http://x\nsetting: best", "default, no-policy, few-shot, oracle-plan"),
        ("model: m\nbase_url: http://x\nextra: {messages: []}", "extra: expected an object"),
        ("- a", "expected an object"),
        ("a: [sk-verysecret", "expected YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_and_never_quotes_a_key(tmp_path, text, message):
    with pytest.raises(ConfigError, match=r".*judge.yaml.*") as caught:
        load_config(LLMConfig, written(tmp_path, text))
    assert message in str(caught.value)
    assert "sk-verysecret" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("text", ["", "no/such.yaml", "model@host"])
def test_neither_a_file_nor_a_model_at_a_url(text):
    with pytest.raises(ConfigError, match="MODEL@BASE_URL"):
        load_config(LLMConfig, text)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_configs_of_the_repository_load(path):
    if path.stem == "prices":
        assert {"jev-1.13.0", "claude-opus-5"} <= set(load_prices(path).models)
        return
    config = load_config(JevConfig if path.stem == "jev" else LLMConfig, str(path))
    price_file = config.price_file()
    assert price_file is None or config.model in load_prices(price_file).models


@pytest.mark.parametrize(
    "text", ["models: {m: {input: 1, output: 1}}", "date: 2026-01-01\nmodels: {m: {input: 1}}", "date: x\nmodels: {}"]
)
def test_prices_need_a_date_and_both_numbers(tmp_path, text):
    with pytest.raises(ConfigError, match="expected"):
        load_prices(Path(written(tmp_path, text)))


def test_cost(tmp_path):
    table = load_prices(Path(written(tmp_path, "date: 2026-01-02\nmodels: {m: {input: 2, output: 10}}")))
    assert (table.date, table.models["m"].cost(500_000, 100_000)) == ("2026-01-02", 2.0)
