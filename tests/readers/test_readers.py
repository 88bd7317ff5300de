"""Recognition, files and directories, damaged input."""

from __future__ import annotations

import json
import os
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redclf.errors import TraceError
from redclf.readers import find_files, formats, iter_trajectories, load
from redclf.readers.base import UniqueIds

from .samples import chat, release, tau2, tau_run


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (release(), "redundancybench"),
        (tau2(), "tau2"),
        ([tau_run()], "tau_bench"),
        (chat(), "openai_chat"),
        ({"messages": chat()}, "openai_chat"),
        ([chat()], "openai_chat"),
    ],
)
def test_exactly_one_reader_recognises_a_file(write, value, name):
    from redclf.readers.document import Document

    document = Document(write(value))
    assert [reader.name for reader in formats() if reader.sniff(document) is None] == [name]
    assert len(load(document.path)) == 1
    assert len(load(document.path, name)) == 1


def test_formats_end_with_the_generic_one():
    assert [reader.name for reader in formats()][-1] == "openai_chat"
    assert all(reader.description for reader in formats())


def test_a_module_is_all_that_a_further_format_takes(write, tmp_path, monkeypatch):
    import sys

    import redclf.readers as package
    from redclf.readers import registry

    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "extra_format.py").write_text(
        "from redclf.readers.base import Reader\n"
        "from redclf.trajectory import Trajectory\n"
        "class ExtraReader(Reader):\n"
        "    name = 'extra'\n"
        "    description = 'for the test'\n"
        "    def sniff(self, document):\n"
        "        return None if document.head == ['extra'] else 'no extra'\n"
        "    def read(self, document, on_error):\n"
        "        yield Trajectory('extra', ())\n"
    )
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(plugin)])
    registry._readers.cache_clear()
    try:
        assert [item.id for item in load(write(["extra"]))] == ["extra"]
        assert "extra" in [reader.name for reader in formats()]
    finally:
        registry._readers.cache_clear()
        sys.modules.pop("redclf.readers.extra_format", None)


def test_unrecognised_file_lists_what_was_tried(write):
    path = write({"spans": []})
    with pytest.raises(TraceError) as caught:
        load(path)
    for reader in formats():
        assert f"{reader.name} (" in str(caught.value)
    assert str(caught.value).startswith(f"{path}: expected a known trace format")


def test_unknown_format_raises_even_with_a_handler(write):
    with pytest.raises(TraceError, match=r"expected a format among auto, .*, got 'nope'"):
        list(iter_trajectories(write(chat()), "nope", on_error=lambda error: None))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"hello", "expected JSON, got something else at line 1, column 1"),
        (b'[\n{"role": "user",\n"content": }]', "line 3, column 12"),
        (b'[{"role": "user", "content": "\xff"}]', "expected UTF-8, got the byte 0xff"),
        ("[]".encode("utf-16"), "expected UTF-8, got UTF-16"),
        (b"[" * 200_000, "expected JSON"),
        (b"[" * 200_000 + b"\n\n1", "expected JSON"),
        (b'{"messages": ' + b"9" * 5000 + b"}", "openai_chat|too many digits"),
        (b"[]", "expected a known trace format"),
        (b"{}", "expected a known trace format"),
        (b"null", "expected a known trace format"),
        (b"NaN", "expected a known trace format"),
        (b"1\n2\n3\n", "expected a known trace format"),
        (b'{"messages": []}', "expected at least one message"),
        (b'{"simulations": []}', "`simulations` holds no objects"),
        (b"\x00\x00", "expected JSON"),
    ],
)
def test_damaged_file(write, content, expected):
    path = write(content)
    with pytest.raises(TraceError, match=expected) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bom_and_windows_line_ends(write):
    text = json.dumps({"messages": chat()})
    assert len(load(write(b"\xef\xbb\xbf" + text.encode(), "a.json"))) == 1
    assert len(load(write(b"\xef\xbb\xbf" + f"{text}\r\n\r\n{text}\r\n".encode(), "b.jsonl"))) == 2


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_json_over_several_lines(write, indent):
    assert len(load(write(json.dumps(chat(), indent=indent)))) == 1
    assert len(load(write(json.dumps([chat()], indent=indent)))) == 1


def test_one_record_a_line_within_a_list(write):
    records = ",\n".join(json.dumps({"messages": chat()}) for _ in range(3))
    assert len(load(write(f"[\n{records}\n]"))) == 3
    assert len(load(write(f"[{records}\n]"))) == 3


@pytest.mark.parametrize("bad", [0, 1, 2])
@pytest.mark.parametrize("damage", [b'{"messages": [{"role": "us', b"\xff\xfe{}", b"NaN", b"[" * 9999 + b"]" * 9999])
def test_damaged_line_is_reported_and_the_others_come(write, bad, damage):
    good = json.dumps({"messages": chat()}).encode()
    lines = [good, good, good]
    lines[bad] = b"x" + damage if damage.startswith(b"\xff") else damage
    path = write(b"\n".join(lines), "a.jsonl")
    errors: list[TraceError] = []
    assert len(list(iter_trajectories(path, on_error=errors.append))) == 2
    assert [error.where for error in errors] == [f"line {bad + 1}"]
    with pytest.raises(TraceError, match=f"line {bad + 1}: expected"):
        load(path)


def test_directory(write, tmp_path):
    write(release(), "data/human_annotation/lamps/final_traces.json")
    write([], "data/human_annotation/lamps/annotation.json")
    write({}, "data/splits.json")
    write("{}", "data/.hidden/a.json")
    write("no trace", "data/notes.txt")
    write(json.dumps({"messages": chat()}) + "\n", "data/more/a.jsonl")
    write(chat(), "data/more/b.traj")
    assert [item.id for item in load(tmp_path / "data")] == [
        "human_annotation:lamps:7",
        "a",
        "b",
    ]


def test_annotation_and_splits_elsewhere_are_files_like_others(write, tmp_path):
    write({}, "annotation.json")
    write({}, "splits.json")
    assert [path.name for path in find_files(tmp_path)] == ["annotation.json", "splits.json"]


def test_damaged_file_in_a_directory_does_not_stop_the_others(write, tmp_path):
    write(chat(), "a.json")
    write("{", "b.json")
    write(chat(), "c.json")
    errors: list[TraceError] = []
    assert [item.id for item in iter_trajectories(tmp_path, on_error=errors.append)] == ["a", "c"]
    assert [error.path for error in errors] == [str(tmp_path / "b.json")]


def test_handler_that_raises_is_asked_once(write):
    calls = []

    def strict(error: TraceError) -> None:
        calls.append(error)
        raise error

    with pytest.raises(TraceError):
        list(iter_trajectories(write([tau_run(), tau_run(task_id=None)]), on_error=strict))
    assert len(calls) == 1


def test_directory_without_traces(tmp_path):
    with pytest.raises(TraceError, match=r"expected trace files \(\*\.json"):
        load(tmp_path)
    errors: list[TraceError] = []
    assert list(iter_trajectories(tmp_path, on_error=errors.append)) == []
    assert len(errors) == 1


@pytest.mark.parametrize("name", ["nowhere", "null\0byte", "x" * 5000])
def test_no_such_path(tmp_path, name):
    with pytest.raises(TraceError, match="expected a"):
        load(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_pipe_is_refused_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(TraceError, match="expected a file or a directory"):
        load(tmp_path / "a.json")
    with pytest.raises(TraceError, match="expected trace files"):
        load(tmp_path)


def test_json_lines_are_streamed(write):
    text = "x" * 200_000
    line = json.dumps({"messages": [{"role": "user", "content": text}]}) + "\n"
    path = write(line * 100, "a.jsonl")
    tracemalloc.start()
    count = sum(1 for _ in iter_trajectories(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 100
    assert peak < 20 * len(line)


def test_large_message(write):
    content = "observation " * (50 * 2**20 // 12)
    (trajectory,) = load(write([{"role": "user", "content": content}]))
    assert len(trajectory.messages[0].content) == len(content)


def test_unique_ids_that_look_numbered():
    unique = UniqueIds()
    assert [unique(item) for item in ("a", "a#2", "a", "a")] == ["a", "a#2", "a#3", "a#4"]


_keys = st.sampled_from(
    [
        "messages",
        "simulations",
        "traj",
        "task_id",
        "id",
        "role",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "requestor",
        "tool_call_id",
        "usage",
        "reward",
        "reward_info",
        "info",
        "policy",
        "type",
        "text",
        "trial",
    ]
)
_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=5),
    st.sampled_from(["user", "assistant", "tool", "system", "robot", "\ud800"]),
)
_json = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=30,
)
_fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_all(path) -> None:
    for name in ("auto", *(reader.name for reader in formats())):
        errors: list[TraceError] = []
        for trajectory in iter_trajectories(path, name, errors.append):
            repr(trajectory).encode()
            assert trajectory.pairing is not None
        for error in errors:
            assert isinstance(error, TraceError)
            assert "\n" not in str(error)
            str(error).encode()
        if errors:
            with pytest.raises(TraceError):
                load(path, name)


@_fuzz
@given(_json)
def test_any_json_gives_trajectories_or_trace_errors(write, value):
    read_all(write(json.dumps(value)))


_seeds = [release(), tau2(), [tau_run()], chat(), {"messages": chat()}]


@_fuzz
@given(st.sampled_from(_seeds), st.data())
def test_any_field_may_be_replaced(write, seed, data):
    value = json.loads(json.dumps(seed))
    node, key = value, None
    for _ in range(data.draw(st.integers(1, 7))):
        if not isinstance(node if key is None else node[key], (dict, list)):
            break
        node = node if key is None else node[key]
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
    if key is not None:
        node[key] = data.draw(_json)
    read_all(write(json.dumps(value)))


@_fuzz
@given(st.sampled_from(_seeds), st.integers(0, 2000), st.binary(max_size=3))
def test_any_bytes_may_be_cut_or_inserted(write, seed, at, inserted):
    raw = json.dumps(seed).encode()
    read_all(write(raw[:at] + inserted))
    read_all(write(raw[:at] + inserted + raw[at:]))
