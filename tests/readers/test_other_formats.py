"""The formats of agents, frameworks and observability tools."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redclf.errors import TraceError
from redclf.readers import formats, iter_trajectories, load
from redclf.readers.document import Document

from .formats_by_hand import ASK, DONE, DRY, RUNS, SAY, as_text

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"
NO_SAMPLES = pytest.mark.skipif(not (SHARED / "samples").is_dir(), reason="needs the samples of ../shared")


@pytest.fixture
def put(tmp_path):
    def written(name):
        reader, value, is_lines = RUNS[name]
        path = tmp_path / ("run.jsonl" if is_lines else "run.json")
        path.write_text(as_text(value, is_lines))
        return reader, path

    return written


@pytest.mark.parametrize("name", RUNS)
def test_the_right_reader_and_no_other(put, name):
    reader, path = put(name)
    document = Document(path)
    found = [made.name for made in formats() if made.sniff(document) is None]
    # Chat messages are so generic that others may look like them; they are asked last.
    assert found[0] == reader and set(found) <= {reader, "openai_chat"}


@pytest.mark.parametrize("name", RUNS)
def test_the_story_is_the_same_in_every_format(put, name):
    reader, path = put(name)
    for run in load(path):
        calls = [item.call for item in run.interactions]
        assert len(calls) == 2 and not run.pairing.unanswered_calls and not run.pairing.orphan_results
        assert calls[0].name in ("look", "bash")
        results = [run.messages[item.result_index].content for item in run.interactions]
        assert DRY in results[0] and (DRY in results[1] or "EXACTLY ONE" in results[1])
        texts = [message.content for message in run.messages if message.role == "user"]
        assert texts in ([ASK], []) and (texts or name in ("steps", "steps lines", "otel tools"))
        said = "\n".join(message.content for message in run.messages if message.role == "assistant")
        assert (SAY in said and DONE in said) or reader in ("steps", "langfuse") or name == "otel tools"
    assert load(path, reader) == load(path)


@pytest.mark.parametrize(
    ("name", "id", "model"),
    [("claude code", "s-1", "claude-sonnet-4"), ("codex", "rollout-1", "gpt-5-codex"),
     ("gemini", "gem-1", "gemini-2.5-pro"),
     ("mini-swe-agent", "beds__1", "gemini-3-pro"), ("responses object", "resp_1", "gpt-5"), ("otel", "t1", "gpt-5"),
     ("langchain plain", "th-1", "gpt-4o"), ("inspect", "7", "openai/gpt-4o"), ("langfuse", "trace-1", "gpt-4o"),
     ("steps objects", "run-1", None), ("anthropic", "run", "claude-sonnet-4-20250514")],
)  # fmt: skip
def test_names_and_models(put, name, id, model):
    (run,) = load(put(name)[1])
    assert run.id == id and run.extra.get("model") == model


@pytest.mark.parametrize(
    ("name", "given", "made"),
    [("claude code", 12, 3), ("gemini", 9, 3), ("mini-swe-agent", 11, 4), ("otel", 40, 6), ("langchain", 5, 2)],
)
def test_usage(put, name, given, made):
    (run,) = load(put(name)[1])
    found = [message.usage for message in run.messages if message.usage]
    assert found[0] == {"prompt_tokens": given, "completion_tokens": made}


def test_what_is_said_about_the_agent_is_the_policy(put):
    for name, policy in (("anthropic", "Be kind."), ("swe-agent", "SETTING"), ("openhands", "SETTING")):
        (run,) = load(put(name)[1])
        assert run.policy == policy


def test_rewards(put):
    (run,) = load(put("inspect")[1])
    assert run.reward == 1.0 and run.task_id == "7" and not run.failed


def test_several_results_in_one_message_keep_their_order(tmp_path):
    blocks = [{"type": "tool_use", "id": f"t{n}", "name": "look", "input": {"bed": n}} for n in range(3)]
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": f"bed {n}"} for n in (2, 0, 1)]
    path = tmp_path / "run.json"
    text = {"type": "text", "text": "and then?"}
    path.write_text(
        json.dumps([{"role": "assistant", "content": blocks}, {"role": "user", "content": [*results, text]}])
    )
    (run,) = load(path)
    assert [run.messages[i.result_index].content for i in run.interactions] == ["bed 0", "bed 1", "bed 2"]
    assert run.messages[-1].content == "and then?" and len(run.messages) == 5


def test_parts_of_one_reply_are_one_message(put):
    (run,) = load(put("claude code")[1])
    assert run.messages[1].content == SAY and len(run.messages[1].tool_calls) == 1
    assert not any("sub-agent" in m.content or "caveat" in m.content for m in run.messages)


def test_an_unknown_file_is_told_why_by_every_reader(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}')
    with pytest.raises(TraceError) as error:
        load(path)
    assert all(f"{reader.name} (" in str(error.value) for reader in formats())


def mutated(text: str, rng: random.Random) -> str:
    """Damage a file in one of the ways in which files are damaged."""
    value = json.loads(text) if "\n" not in text else [json.loads(line) for line in text.split("\n")]
    lines = "\n" in text
    odd = [None, True, 10**40, -1.5, "", "\ud800", [], {}, [[]], "x" * 5_000, {"type": "tool_use"}, [1, "a", None]]
    for _ in range(rng.randrange(1, 4)):
        place = None
        inner = value
        while isinstance(inner, dict | list) and inner and (place is None or rng.random() < 0.65):
            place = (inner, rng.choice(list(inner)) if isinstance(inner, dict) else rng.randrange(len(inner)))
            inner = inner[place[1]]
        if place is None:
            continue
        holder, key = place
        change = rng.random()
        if change < 0.6:
            holder[key] = copy.deepcopy(rng.choice(odd))
        elif change < 0.8:
            del holder[key]
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
    return "\n".join(json.dumps(item) for item in value) if lines and isinstance(value, list) else json.dumps(value)


@pytest.mark.parametrize("name", RUNS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9), cut=st.booleans())
def test_damaged_files_give_trajectories_or_clear_errors(tmp_path_factory, name, seed, cut):
    reader, value, is_lines = RUNS[name]
    rng = random.Random(seed)
    text = mutated(as_text(value, is_lines), rng)
    if cut:
        text = text[: rng.randrange(len(text) + 1)]
    path = tmp_path_factory.getbasetemp() / f"fuzz-{reader}.{'jsonl' if is_lines else 'json'}"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    for format in ("auto", reader):
        errors: list[TraceError] = []
        runs = list(iter_trajectories(path, format, errors.append))
        assert runs or errors or text == "[]"
        for error in errors:
            assert str(path) in str(error) and "\n" not in str(error) and "expected" in str(error)
        for run in runs:
            assert run.messages and run.source.startswith(str(path))
            for item in run.interactions:
                assert (
                    run.messages[item.call_index].role == "assistant" and run.messages[item.result_index].role == "tool"
                )
            json.dumps([[m.content for m in run.messages], run.id]).encode("utf-8")


@NO_SAMPLES
@pytest.mark.parametrize(
    ("name", "reader", "runs", "messages", "calls", "results"),
    [("claude_code_session.jsonl", "claude_code", 1, 4, 1, 0), ("codex_rollout.jsonl", "codex", 1, 2, 2, 0),
     ("gemini_cli_session.json", "gemini_cli", 1, 4, 2, 2), ("otel_genai_copilot.jsonl", "otel_genai", 2, 6, 3, 3)],
)  # fmt: skip
def test_small_real_samples_by_hand(name, reader, runs, messages, calls, results):
    path = SHARED / "samples" / name
    found = load(path)
    assert load(path, reader) == found and len(found) == runs
    assert sum(len(run.messages) for run in found) == messages
    assert sum(len(m.tool_calls) for run in found for m in run.messages) == calls
    assert sum(m.role == "tool" for run in found for m in run.messages) == results


@NO_SAMPLES
def test_mini_swe_agent_counts_are_those_of_a_plain_look():
    for path in [
        *(SHARED / "samples" / "mini_swe_agent").glob("*.json"),
        SHARED / "samples" / "mini_swe_agent.traj.json",
    ]:
        value = json.loads(path.read_text())
        raw = value if isinstance(value, list) else value["messages"]
        (run,) = load(path)
        assert len(run.messages) == len(raw)
        fenced = [i for i, m in enumerate(raw) if m["role"] == "assistant" and "```" in m["content"]]
        called = [i for i, m in enumerate(run.messages) if m.tool_calls]
        assert called == fenced
        answered = [i for i in called if i + 1 < len(raw)]
        assert [item.step for item in run.interactions] == [(i, i + 1) for i in answered]
        refused = [i for i in answered if raw[i]["content"].count("```bash") > 1]
        assert all("EXACTLY ONE" in raw[i + 1]["content"].upper() or "```" in raw[i]["content"] for i in refused)


@NO_SAMPLES
@pytest.mark.parametrize("name", ["swe_agent_ctf.traj", "swe_agent_function_calling.traj", "swe_agent_pydicom.traj"])
def test_swe_agent_counts_are_those_of_a_plain_look(name):
    raw = json.loads((SHARED / "samples" / name).read_text())
    (run,) = load(SHARED / "samples" / name)
    assert len(run.messages) == len(raw["history"])
    acted = sum(m["role"] == "assistant" and bool(m.get("action")) for m in raw["history"])
    assert sum(len(m.tool_calls) for m in run.messages) == acted
    assert len(run.interactions) in (acted, acted - 1)  # the last one submits
