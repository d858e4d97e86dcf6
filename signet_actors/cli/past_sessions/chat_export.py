"""The file ``conversations.json`` of a data export of Claude or of ChatGPT: one list of conversations.

Of a conversation of ChatGPT, which is a tree, only the branch that was shown last is kept.

Source: docs/guides/backfill.md.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from signet_actors.cli.importers.source import NotThisFormat, read_json
from signet_actors.cli.past_sessions.session import Message, PastSession
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.domain.transcripts.json_values import object_at, text_at, text_of_content, time_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

WANTED: Final = "give the file conversations.json of a data export of Claude or ChatGPT, unpacked"
_LONGEST_BRANCH: Final = 100_000


def sessions(path: Path) -> Iterator[PastSession]:
    """Yield the conversations of the export; raise NotThisFormat if it is none."""
    found = read_json(path, WANTED)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise NotThisFormat(f"{path} is no list of conversations; {WANTED}")
    for one in found:
        if isinstance(one.get("chat_messages"), list):
            source, key, said = "claude", text_at(one, "uuid"), _said_to_claude(one)
            updated = time_at(one, "updated_at", "created_at")
        elif isinstance(one.get("mapping"), dict):
            source, key, said = "chatgpt", text_at(one, "conversation_id", "id"), _said_to_chatgpt(one)
            updated = time_at(one, "update_time", "create_time")
        else:
            raise NotThisFormat(f"{path} has an entry that is no conversation; {WANTED}")
        if key is None:
            raise NotThisFormat(f"{path} has a conversation without a name of its own; {WANTED}")
        if said:
            size = sum(len(message["content"]) for message in said)
            modified_ms = 0 if updated is None else epoch_ms(updated) or 0
            yield PastSession(source, key, size, modified_ms, partial(list, said))


def _said_to_claude(conversation: Mapping[str, Any]) -> list[Message]:
    found = []
    for message in conversation["chat_messages"]:
        if isinstance(message, dict):
            text = text_of_content(message.get("content")) or text_at(message, "text") or ""
            found.append(_message(text_at(message, "sender"), text, time_at(message, "created_at")))
    return [message for message in found if message is not None]


def _said_to_chatgpt(conversation: Mapping[str, Any]) -> list[Message]:
    nodes = conversation["mapping"]
    name = conversation.get("current_node")
    branch: list[Message] = []
    seen: set[str] = set()
    while isinstance(name, str) and name not in seen and len(seen) < _LONGEST_BRANCH:
        seen.add(name)
        node = object_at(nodes, name)
        said = _chatgpt_message(object_at(node, "message"))
        if said is not None:
            branch.append(said)
        name = node.get("parent")
    return branch[::-1]


def _chatgpt_message(message: Mapping[str, Any]) -> Message | None:
    """Return what was said, or None for what the program added, calls of tools, and what they returned."""
    content, metadata = object_at(message, "content"), object_at(message, "metadata")
    if metadata.get("is_visually_hidden_from_conversation") or message.get("recipient", "all") != "all":
        return None
    if content.get("content_type") not in {"text", "multimodal_text"} or not isinstance(content.get("parts"), list):
        return None
    role = text_at(object_at(message, "author"), "role")
    text = "\n".join(part for part in content["parts"] if isinstance(part, str) and part.strip())
    return _message(role, text, time_at(message, "create_time"))


def _message(role: str | None, text: str, said_at: str | None) -> Message | None:
    if role not in {"human", "user", "assistant"} or not text.strip():
        return None
    return {"role": role, "content": text, "timestamp": said_at}
