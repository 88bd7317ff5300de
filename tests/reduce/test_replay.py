from __future__ import annotations

import json

import pytest
from traces import chain, said, step, trace, user

from redclf.accounting import account
from redclf.cli import main
from redclf.reduce import DeleteReflector, NoReflector, RandomReflector
from redclf.reduce.replay import Replay, replay, replay_all

LONG = "order_41 is late\n" + "\n".join(f"line {n} of a text" for n in range(120))
RUN = trace(
    user("go"), step("look", LONG), step("look", "short"), step("look", "other"),
    step("send", "ok", {"id": "order_41"}), said("order_41 was sent"),
)  # fmt: skip


def test_without_a_reducer_it_is_the_account():
    for run in (RUN, chain(20), chain(20, 4)):
        found = replay(run, NoReflector(), theta=10)
        assert found.input_tokens == found.input_tokens_none == account(run, recorded=False).input
        assert found.output_tokens == account(run, recorded=False).output and found.keep == 1.0
        assert (found.saved, found.harm) == (0.0, 0.0)


def test_what_was_removed_before_it_was_used_is_harm():
    found = replay(RUN, DeleteReflector(), theta=100)
    # The call and the reply name the order, which nothing but the first result had shown.
    assert (found.used, found.lost) == (2, 1) and found.harm == 0.5
    assert found.input_tokens < found.input_tokens_none and found.keep < 0.1
    # The call has shown it again when the reply is made.
    assert replay(RUN, DeleteReflector(), theta=100_000).lost == 0


def test_the_same_again_and_sums():
    one, other = replay(RUN, RandomReflector(), theta=100), replay(chain(9), RandomReflector(), theta=100)
    assert replay_all([RUN, chain(9)], RandomReflector(), theta=100) == one + other
    assert Replay().harm == 0 and Replay().keep == 1 and Replay().saved == 0


@pytest.fixture
def command(capfd, tmp_path):
    path = tmp_path / "run.json"
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    pair = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": LONG, "tool_call_id": "c"},
    ]
    path.write_text(json.dumps([{"role": "user", "content": "go"}, *pair * 6]))

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["reduce-replay", str(path), *map(str, arguments)])
        return (stop.value.code, *capfd.readouterr())

    return run


def test_command(command, tmp_path):
    target = tmp_path / "out.json"
    code, out, err = command("--reflector", "truncate", "--theta", 100, "--json", target)
    assert code == 0 and err == "" and "truncate" in out and "delete" in out and "unknown" in out
    found = json.loads(target.read_text())
    assert {"reflector", "trajectories", "keep", "input_tokens", "input_tokens_none", "harm"} <= found.keys()
    assert found["reflector"] == "truncate" and found["trajectories"] == 1 and 0 < found["keep"] < 1
    assert found["input_tokens"] < found["input_tokens_none"] and 0 < found["saved_of_ceiling"] < 1


def test_command_with_several_and_prices(command, tmp_path):
    target = tmp_path / "out.json"
    code, out, _ = command("--reflector", "none,random", "--theta", 100, "--json", target, "--model", "gpt-4o")
    assert code == 0 and "unknown" not in out
    assert [record["reflector"] for record in json.loads(target.read_text())] == ["none", "random"]


@pytest.mark.parametrize("more", [["--reflector", "x"], ["--theta", "-1"], ["--a", "0"], ["--prices", "none.json"]])
def test_wrong_options(command, more):
    code, _, err = command(*more, "--reflector", "none") if "--reflector" not in more else command(*more)
    assert code == 2 and "expected" in err and err.count("\n") == 1
