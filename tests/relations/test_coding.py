from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest
from traces import step, trace, user
from work import work

from redclf.relations.coding import (
    CODING_PAIR_NAMES,
    CODING_TARGET_NAMES,
    OUTCOMES,
    CodingFacts,
    canonical_paths,
    outcome_of,
)
from redclf.relations.features import PAIR_NAMES, TARGET_NAMES, Relations
from redclf.relations.views import TrajectoryView

FILE = "\n".join(f"def garden_{n}(bed):\n    return water(bed, {n})" for n in range(10))


def sh(command, result="<returncode>0</returncode>\n<output>\n</output>"):
    return step("bash", result, {"command": command})


def shown(text, code=0):
    return f"<returncode>{code}</returncode>\n<output>\n{text}\n</output>"


def numbered(first, last):
    rows = FILE.split("\n")
    return "\n".join(f"{n:6}\t{rows[n - 1]}" for n in range(first, last + 1))


def facts(*parts):
    return CodingFacts(TrajectoryView(trace(user("Please mend the garden"), *parts)))


def target(found, place):
    values = found.target(found.view.steps[place])
    assert set(values) <= set(CODING_TARGET_NAMES)
    return values


def pairs(place, *parts):
    relations = Relations(TrajectoryView(trace(user("Please mend the garden"), *parts)))
    rows = relations.pair_features[place]
    return {
        candidate.members[0]: dict(zip(PAIR_NAMES, row, strict=True))
        for candidate, row in zip(relations.candidates[place], rows, strict=True)
        if candidate.kind == "step"
    }


class TestViews:
    def test_union_of_earlier_views(self):
        found = facts(
            sh("sed -n '1,4p' garden.py", shown(numbered(1, 4))),
            sh("sed -n '5,8p' ./garden.py", shown(numbered(5, 8))),
            sh("sed -n '3,6p' /repo/garden.py", shown(numbered(3, 6))),
        )
        values = target(found, 2)
        assert values["range_union_f"] == 1.0 and values["range_best_f"] == 0.5
        assert values["lines_new_f"] == 0.0 and values["lines_best_f"] == 0.5

    def test_a_change_between_uncovers(self):
        look = sh("sed -n '1,4p' garden.py", shown(numbered(1, 4)))
        found = facts(look, sh("sed -i '2s/water/soak/' garden.py"), look)
        assert target(found, 2)["range_union_f"] == 0.0
        assert target(found, 2)["lines_old_f"] == 1.0 and target(found, 2)["lines_whole_changed_n"] == 1

    def test_editors_and_shells_show_the_same_lines(self):
        view = {"command": "view", "path": "/repo/garden.py", "view_range": [1, 8]}
        found = facts(
            step("str_replace_editor", numbered(1, 8), view),
            sh("head -n 4 garden.py", shown("\n".join(FILE.split("\n")[:4]))),
        )
        assert target(found, 1)["range_best_f"] == 1.0 and target(found, 1)["lines_whole_gap"] == -1

    def test_lines_of_a_search_are_lines_of_the_file(self):
        found = facts(
            sh("cat garden.py", shown(FILE)), sh("grep -rn garden_3 .", shown("./garden.py:7:def garden_3(bed):"))
        )
        assert target(found, 1)["lines_new_f"] == 0.0

    def test_what_is_open_is_what_goes_on(self):
        found = facts(
            step(
                "open",
                "[File: /repo/garden.py (20 lines total)]\n1:a\n(Open file: /repo/garden.py)",
                {"path": "garden.py"},
            ),
            step("edit", "File updated", {"start_line": 1, "end_line": 1, "replacement_text": "b"}),
        )
        assert found.facts[1].writes == {"garden.py"}

    def test_first_to_show_has_rank_nought(self):
        look = sh("sed -n '1,4p' garden.py", shown(numbered(1, 4)))
        rows = pairs(2, look, look, look)
        assert rows[0]["whole_rank"] == 0 and rows[1]["whole_rank"] == 1
        assert rows[0]["c_lines_first_f"] == 1.0 and rows[1]["c_lines_first_f"] == 0.0


class TestChanges:
    def test_refused_edit_changes_nothing(self):
        edit = {"command": "str_replace", "path": "garden.py", "old_str": "x = water", "new_str": "y = water"}
        found = facts(
            step("str_replace_editor", "No replacement was performed, old_str did not appear verbatim.", edit),
            step("str_replace_editor", "The file has been edited.", edit),
        )
        assert target(found, 0)["outcome"] == OUTCOMES.index("no_edit") and "edit_again_gap" not in target(found, 0)
        assert target(found, 1)["edit_source_is"]

    def test_edited_again_and_undone(self):
        found = facts(
            sh("sed -i 's/water/soak/' garden.py"),
            sh("git checkout garden.py"),
            sh("sed -i 's/water/spray/' garden.py"),
        )
        values = target(found, 0)
        assert values["edit_again_gap"] == 1 and values["edit_undone_gap"] == 1

    def test_kept_in_the_final_patch(self):
        patch = "diff --git a/garden.py b/garden.py\n@@ -1 +1 @@\n-    water(bed)\n+    spray(bed)\n"
        found = facts(
            sh("cat garden.py", shown("    water(bed)")), sh("sed -i 's/water/soaking/' garden.py"),
            sh("sed -i 's/soaking/spray/' garden.py"), sh("git diff", shown(patch)),
        )  # fmt: skip
        assert target(found, 1)["edit_kept_f"] == 0.0 and target(found, 2)["edit_kept_f"] == 1.0
        assert target(found, 0)["lines_edited_n"] == 1 and target(found, 0)["path_diff_is"]

    def test_a_script_and_its_runs(self):
        made = sh("cat > try.py <<'EOF'\nimport gardn\nEOF")
        found = facts(
            made, sh("python try.py", shown("Traceback (most recent call last):\nModuleNotFoundError: gardn", 1)), made,
            sh("python try.py", shown("watered")), sh("sed -i 's/water/soak/' garden.py"),
            sh("python try.py", shown("soaked")),
            sh("rm try.py"),
        )  # fmt: skip
        assert OUTCOMES[int(target(found, 0)["edit_run_outcome"])] == "own_error"
        assert target(found, 1)["run_change_gap"] == 1 and target(found, 1)["path_scratch_is"]
        last = target(found, 5)
        assert (last["run_before_gap"], last["run_before_source_edits_n"], last["run_gone_gap"]) == (-2, 1, 1)
        assert not target(found, 0)["edit_source_is"] and target(found, 4)["edit_source_is"]

    def test_script_that_changes_files(self):
        found = facts(
            sh("cat > mend.py <<'EOF'\nopen('garden.py', 'w').write('x')\nEOF"),
            sh("python mend.py"),
            sh("cat garden.py"),
        )
        assert found.facts[1].writes == {"garden.py"} and not found.facts[0].source and found.facts[1].source


class TestSearches:
    def test_found_and_opened(self):
        parts = sh("grep -rl water .", shown("./src/garden.py")), sh("ls"), sh("cat src/garden.py", shown(FILE))
        assert target(facts(*parts), 0)["found_opened_n"] == 1
        rows = pairs(0, *parts)
        assert rows[2]["next_found_rank"] == 0 and rows[2]["c_opens_found_is"] and not rows[1]["c_opens_found_is"]

    def test_same_pattern(self):
        found = facts(sh("grep -n water garden.py"), sh("grep -rn water src"))
        assert target(found, 1)["pattern_before_n"] == 1


@pytest.mark.parametrize(
    ("kind", "result", "outcome"),
    [
        ("view", shown("def garden(): ..."), "fine"),
        ("search", shown("", 1), "nothing"),
        ("view", shown("cat: garden.py: No such file or directory", 1), "no_file"),
        ("run", shown("bash: pyton: command not found", 127), "no_command"),
        (
            "run",
            shown('Traceback (most recent call last):\n  File "/r/try.py", line 1, in <module>\nValueError: x', 1),
            "own_error",
        ),
        (
            "run",
            shown('Traceback (most recent call last):\n  File "/r/bed.py", line 1, in <module>\nValueError: x', 1),
            "error",
        ),
        ("test", shown("=== 1 failed, 2 passed in 0.1s ===", 1), "failed_tests"),
        ("edit", "Please provide exactly one action in your reply.", "refused"),
        ("view", "<response clipped> a.py", "clipped"),
    ],
)
def test_outcomes(kind, result, outcome):
    assert outcome_of(kind, result, {"try.py"})[0] == outcome


def test_paths_in_any_spelling():
    assert canonical_paths(["/repo/src/bed.py", "src/bed.py", "./src/bed.py"]) == dict.fromkeys(
        ["/repo/src/bed.py", "src/bed.py", "./src/bed.py"], "src/bed.py"
    )
    found = canonical_paths(["bed.py", "a/bed.py", "b/bed.py"])
    assert len(set(found.values())) == 3


def test_other_agents_have_no_such_facts():
    relations = Relations(TrajectoryView(trace(user("hi"), step("get_bed", '{"id": 1}', {"id": 1}))))
    row = dict(zip(TARGET_NAMES, relations.target_features[0], strict=True))
    assert all(math.isnan(row[name]) for name in CODING_TARGET_NAMES)
    pair = dict(zip(PAIR_NAMES, relations.pair_features[0][0], strict=True))
    assert all(math.isnan(pair[name]) for name in CODING_PAIR_NAMES)


def test_every_name_once():
    assert len(set(TARGET_NAMES)) == len(TARGET_NAMES) and len(set(PAIR_NAMES)) == len(PAIR_NAMES)


def test_work_grows_with_the_length_and_no_faster():
    def look_through(length: int) -> None:
        parts = [sh(f"sed -n '{n % 50 + 1},{n % 50 + 40}p' garden_{n % 7}.py", shown(FILE)) for n in range(length)]
        parts[::5] = [sh(f"sed -i '{n}s/a/b/' garden_{n % 7}.py") for n in range(len(parts[::5]))]
        view = TrajectoryView(trace(user("go"), *parts))
        found = CodingFacts(view)
        for place in range(len(view.steps)):
            found.target(view.steps[place])

    counts = [work(lambda n=n: look_through(n)) for n in (300, 1200)]
    assert counts[1] < 4.5 * counts[0]


def test_same_values_whatever_the_hash_seed():
    code = (
        "import numpy as np, sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_coding import FILE, sh, shown, trace, user\n"
        "from redclf.relations.features import Relations\n"
        "from redclf.relations.views import TrajectoryView\n"
        "parts = [sh(f'cat a/x{n}.py b/x{n % 3}.py', shown(FILE)) for n in range(9)] + [sh('rm a/x1.py a/x2.py')]\n"
        "r = Relations(TrajectoryView(trace(user('go'), *parts)))\n"
        "print(r.target_features.tobytes().hex(), [p.tobytes().hex() for p in r.pair_features])"
    )
    here = os.path.dirname(__file__)
    out = {
        subprocess.run(
            [sys.executable, "-c", code, here, os.path.join(here, "..", "helpers")],
            env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in (1, 2)
    }  # fmt: skip
    assert len(out) == 1
