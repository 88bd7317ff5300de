"""Content hashes of trajectories: how a model remembers what it was trained on."""

from __future__ import annotations

import hashlib
import json

from redclf.trajectory import Trajectory


def trajectory_hash(trajectory: Trajectory) -> str:
    """Return 16 hex digits of a hash over roles, texts, tool names and arguments.

    Ids, labels and metadata do not enter, so that a copy under another name or in another format is
    still recognised.
    """
    digest = hashlib.sha256()
    for message in trajectory.messages:
        if message.role == "system":
            continue
        calls = [[call.name, call.arguments] for call in message.tool_calls]
        record = json.dumps([message.role, message.content, calls], sort_keys=True, ensure_ascii=True, default=str)
        digest.update(record.encode())
        digest.update(b"\n")
    return digest.hexdigest()[:16]
