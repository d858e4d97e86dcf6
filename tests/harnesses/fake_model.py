"""A model server for tests, on loopback, in the formats of five APIs.

    fake_model.py --port 4900 --log requests.jsonl

It speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini and Ollama, streaming and not. Each
request is written as one JSON line to the log. What it answers is scripted:

    POST /_script  {"replies": [{"tool": "memory_search", "args": {"query": "x"}}, {"say": "text"}]}

The replies are used up in order, one for each request that offers tools (so a request for a title uses none). `tool` is
compared with the end of the offered names: `memory_search` calls `mcp__signet__memory_search`. Besides:

    {"say": "...", "input_tokens": 190000}     the usage that is reported, to force a compaction
    {"say": "...", "sleep": 3}                 wait before the answer
    {"error": 529}                             an HTTP status

Without a script it answers `Understood.`, and after a tool its result. A request for JSON (with a schema) gets the
answer of a rule, POST /_json {"replies": [{"contains": "text of the prompt", "answer": {...}}]}, else a document made
from the schema. A rule also answers a prompt without a schema.
GET /_log?after=N returns what was recorded; GET /_tools what was asked for and was not offered.
"""

import argparse
import http.server
import json
import socketserver
import threading
import time
import urllib.parse


class State:
    def __init__(self, log_path):
        self.lock = threading.Lock()
        self.log_path = log_path
        self.records = []
        self.script = []
        self.json_rules = []
        self.missing_tools = []
        self.calls = 0

    def record(self, record):
        with self.lock:
            record["n"] = len(self.records)
            self.records.append(record)
            if self.log_path:
                with open(self.log_path, "a") as file:
                    file.write(json.dumps(record) + "\n")

    def next_reply(self, offers_tools):
        with self.lock:
            if offers_tools and self.script:
                return self.script.pop(0)
        return None

    def call_id(self):
        with self.lock:
            self.calls += 1
            return f"call_{self.calls:06d}"


STATE: State


def all_tools(tools):
    """(name, namespace) of every tool in any of the formats, also of those in a namespace."""
    found = []
    for tool in tools or []:
        if "functionDeclarations" in tool:
            found += [(declared["name"], None) for declared in tool["functionDeclarations"]]
        elif tool.get("type") == "namespace":
            found += [(inner.get("name"), tool.get("name")) for inner in tool.get("tools", [])]
        elif "function" in tool and isinstance(tool["function"], dict):
            found.append((tool["function"].get("name"), None))
        elif tool.get("name"):
            found.append((tool["name"], None))
    return found


def pick_tool(tools, wanted):
    offered = all_tools(tools)
    exact = [one for one in offered if one[0] == wanted]
    ending = [one for one in offered if one[0] and one[0].endswith(wanted)]
    if exact or ending:
        return (exact or ending)[0]
    with STATE.lock:
        STATE.missing_tools.append({"wanted": wanted, "offered": [name for name, _ in offered]})
    return None


def text_of(value):
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(text_of(one) for one in value)
    if isinstance(value, dict):
        for key in ("text", "content", "output", "parts", "functionResponse", "response"):
            if key in value:
                return text_of(value[key])
        return json.dumps(value)
    return "" if value is None else str(value)


def from_schema(schema, root=None):
    """The smallest document that a JSON schema allows (enough for titles, routers and classifiers)."""
    root = root or schema
    if not isinstance(schema, dict):
        return "x"
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target.get(part, {})
        return from_schema(target, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return from_schema(schema[choice][0], root)
    kind = schema.get("type", "object")
    kind = (kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        names = schema.get("required") or list(schema.get("properties", {}))
        return {name: from_schema(schema.get("properties", {}).get(name, {"type": "string"}), root) for name in names}
    if kind == "array":
        return [from_schema(schema.get("items", {}), root) for _ in range(schema.get("minItems", 0))]
    return {"integer": 1, "number": 0.5, "boolean": False, "null": None}.get(kind, "a word")


def json_answer(prompt, schema):
    with STATE.lock:
        rules = list(STATE.json_rules)
    for rule in rules:
        if rule["contains"] in prompt:
            answer = rule["answer"]
            return answer if isinstance(answer, str) else json.dumps(answer)
    return json.dumps(from_schema(schema)) if schema else "{}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    # -- plumbing

    def send_json(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_events(self, events, named):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        for event in events:
            if isinstance(event, str):
                chunk = f"data: {event}\n\n"
            else:
                chunk = (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
            self.wfile.write(chunk.encode())
            self.wfile.flush()

    def send_lines(self, lines):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        for line in lines:
            self.wfile.write(json.dumps(line).encode() + b"\n")

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                data += self.rfile.read(size)
                self.rfile.readline()
                if not size:
                    return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def handle_any(self):
        parsed = urllib.parse.urlsplit(self.path)
        path, query = parsed.path, urllib.parse.parse_qs(parsed.query)
        raw = self.body()
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {"_raw": raw[:2000].decode("latin-1")}
        if path == "/_log":
            after = int(query.get("after", ["0"])[0])
            with STATE.lock:
                return self.send_json(STATE.records[after:])
        if path == "/_script":
            with STATE.lock:
                STATE.script = list(body["replies"])
                STATE.missing_tools = []
            return self.send_json({"ok": True, "n": len(STATE.records)})
        if path == "/_json":
            with STATE.lock:
                STATE.json_rules = list(body["replies"])
            return self.send_json({"ok": True})
        if path == "/_tools":
            with STATE.lock:
                return self.send_json({"missing": STATE.missing_tools, "left": STATE.script})
        STATE.record(
            {
                "t": time.time(),
                "method": self.command,
                "path": self.path,
                "body": body,
                "agent": self.headers.get("User-Agent", ""),
            }
        )
        return self.route(path, query, body or {})

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_any  # noqa: N815 - the names of the library

    def route(self, path, query, body):
        if path.endswith(("/count_tokens", ":countTokens")):
            return self.send_json({"input_tokens": 1000, "totalTokens": 1000})
        if path.endswith("/messages"):
            return self.anthropic(body)
        if path.endswith("/responses"):
            return self.openai_responses(body)
        if path.endswith("/responses/compact"):
            return self.send_json(
                {
                    "output": [
                        {
                            "type": "message",
                            "role": "assistant",
                            "content": [{"type": "output_text", "text": "Summary of the conversation so far."}],
                        }
                    ]
                }
            )
        if path.endswith("/chat/completions"):
            return self.chat(body)
        if "GenerateContent" in path or path.endswith(":generateContent"):
            return self.gemini(path, body)
        if path.endswith("/models"):
            return self.send_json(
                {
                    "object": "list",
                    "data": [{"id": "fake-model", "object": "model", "created": 1, "owned_by": "test"}],
                    "models": [],
                }
            )
        if path == "/api/version":
            return self.send_json({"version": "0.12.0"})
        if path == "/api/tags":
            return self.send_json(
                {"models": [{"name": "qwen3:4b", "model": "qwen3:4b", "size": 1, "digest": "0" * 64}]}
            )
        if path == "/api/show":
            return self.send_json({"model_info": {}, "capabilities": ["completion"]})
        if path in ("/api/chat", "/api/generate"):
            return self.ollama(path, body)
        return self.send_json({"error": {"type": "not_found_error", "message": f"not in the fake model: {path}"}}, 404)

    def decide(self, tools, last_result, prompt, schema):
        """What to answer: ('text', text, usage) or ('tool', name, namespace, args, usage)."""
        reply = self.reply_for(tools)
        usage = (reply or {}).get("input_tokens", 1200)
        if reply and reply.get("sleep"):
            time.sleep(reply["sleep"])
        if reply and "error" in reply:
            return ("error", reply["error"], usage)
        if reply and "tool" in reply:
            picked = pick_tool(tools, reply["tool"])
            if picked:
                return ("tool", picked[0], picked[1], reply.get("args", {}), usage)
            return ("text", f"There is no tool {reply['tool']}.", usage)
        if reply and "say" in reply:
            return ("text", reply["say"], usage)
        if schema is not None or any(rule["contains"] in prompt for rule in STATE.json_rules):
            return ("text", json_answer(prompt, schema or {}), usage)
        if last_result:
            return ("text", "The tool said: " + last_result[:300], usage)
        return ("text", "Understood.", usage)

    def reply_for(self, tools):
        return STATE.next_reply(bool(all_tools(tools)))

    # -- the five APIs

    def anthropic(self, body):
        messages = body.get("messages", [])
        last = messages[-1].get("content") if messages else ""
        results = (
            [text_of(one.get("content")) for one in last if isinstance(one, dict) and one.get("type") == "tool_result"]
            if isinstance(last, list)
            else []
        )
        schema = (body.get("output_config") or {}).get("format", {}).get("schema") or (
            body.get("output_format") or {}
        ).get("schema")
        what = self.decide(body.get("tools"), "\n".join(results), text_of(messages), schema)
        if what[0] == "error":
            return self.send_json(
                {"type": "error", "error": {"type": "overloaded_error", "message": "scripted"}}, what[1]
            )
        usage = {
            "input_tokens": what[-1],
            "output_tokens": 20,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        }
        if what[0] == "tool":
            block = {
                "type": "tool_use",
                "id": STATE.call_id().replace("call", "toolu"),
                "name": what[1],
                "input": what[3],
            }
        else:
            block = {"type": "text", "text": what[1]}
        message = {
            "id": "msg_" + STATE.call_id(),
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [block],
            "stop_reason": "tool_use" if what[0] == "tool" else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            return self.send_json(message)
        if what[0] == "tool":
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(what[3])}
        else:
            start = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": what[1]}
        return self.send_events(
            [
                {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
                {"type": "content_block_start", "index": 0, "content_block": start},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
                    "usage": usage,
                },
                {"type": "message_stop"},
            ],
            named=True,
        )

    def openai_responses(self, body):
        items = body.get("input", [])
        items = items if isinstance(items, list) else [{"content": items}]
        last = items[-1] if items else {}
        result = text_of(last.get("output")) if str(last.get("type", "")).endswith("_output") else ""
        form = (body.get("text") or {}).get("format") or {}
        what = self.decide(body.get("tools"), result, text_of(items), form.get("schema"))
        if what[0] == "error":
            return self.send_json({"error": {"message": "scripted", "type": "server_error"}}, what[1])
        if what[0] == "tool":
            item = {
                "type": "function_call",
                "id": "fc_" + STATE.call_id(),
                "call_id": STATE.call_id(),
                "name": what[1],
                "arguments": json.dumps(what[3]),
                "status": "completed",
            }
            if what[2]:
                item["namespace"] = what[2]
        else:
            item = {
                "type": "message",
                "id": "msg_" + STATE.call_id(),
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": what[1], "annotations": []}],
            }
        response = {
            "id": "resp_" + STATE.call_id(),
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "model": body.get("model"),
            "output": [],
        }
        done = {
            **response,
            "status": "completed",
            "output": [item],
            "usage": {
                "input_tokens": what[-1],
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": what[-1] + 20,
            },
        }
        if not body.get("stream"):
            return self.send_json(done)
        events = [{"type": "response.created", "response": response}]
        if what[0] == "tool":
            events.append({"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}})
        else:
            events.append({"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}})
            events.append(
                {
                    "type": "response.output_text.delta",
                    "item_id": item["id"],
                    "output_index": 0,
                    "content_index": 0,
                    "delta": what[1],
                }
            )
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        events.append({"type": "response.completed", "response": done})
        return self.send_events(
            [{**event, "sequence_number": number} for number, event in enumerate(events)], named=True
        )

    def chat(self, body):
        messages = body.get("messages", [])
        result = text_of(messages[-1].get("content")) if messages and messages[-1].get("role") == "tool" else ""
        form = body.get("response_format") or {}
        schema = (
            (form.get("json_schema") or {}).get("schema")
            if form.get("type") == "json_schema"
            else ({} if form.get("type") == "json_object" else None)
        )
        what = self.decide(body.get("tools"), result, text_of(messages), schema)
        if what[0] == "error":
            return self.send_json({"error": {"message": "scripted", "type": "server_error"}}, what[1])
        usage = {"prompt_tokens": what[-1], "completion_tokens": 20, "total_tokens": what[-1] + 20}
        if what[0] == "tool":
            call = {
                "index": 0,
                "id": STATE.call_id(),
                "type": "function",
                "function": {"name": what[1], "arguments": json.dumps(what[3])},
            }
            message, finish = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        else:
            message, finish = {"role": "assistant", "content": what[1]}, "stop"
        base = {"id": "chatcmpl-" + STATE.call_id(), "created": int(time.time()), "model": body.get("model")}
        if not body.get("stream"):
            return self.send_json(
                {
                    **base,
                    "object": "chat.completion",
                    "usage": usage,
                    "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                }
            )
        chunk = {**base, "object": "chat.completion.chunk"}
        return self.send_events(
            [
                {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
                "[DONE]",
            ],
            named=False,
        )

    def gemini(self, path, body):
        contents = body.get("contents", [])
        parts = contents[-1].get("parts", []) if contents else []
        results = [json.dumps(part["functionResponse"].get("response")) for part in parts if "functionResponse" in part]
        config = body.get("generationConfig") or {}
        schema = config.get("responseSchema") or config.get("responseJsonSchema")
        what = self.decide(body.get("tools"), "\n".join(results), text_of(contents), schema)
        if what[0] == "error":
            return self.send_json({"error": {"code": what[1], "message": "scripted", "status": "UNAVAILABLE"}}, what[1])
        if what[0] == "tool":
            part = {"functionCall": {"id": STATE.call_id(), "name": what[1], "args": what[3]}}
        else:
            part = {"text": what[1]}
        answer = {
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {
                "promptTokenCount": what[-1],
                "candidatesTokenCount": 20,
                "totalTokenCount": what[-1] + 20,
            },
            "modelVersion": "fake",
            "responseId": STATE.call_id(),
        }
        if "stream" not in path:
            return self.send_json(answer)
        return self.send_events([json.dumps(answer)], named=False)

    def ollama(self, path, body):
        messages = body.get("messages") or [{"content": body.get("prompt", "")}]
        schema = body.get("format")
        prompt = text_of([one.get("content") for one in messages])
        what = self.decide(
            body.get("tools"), "", prompt, schema if isinstance(schema, dict) else ({} if schema else None)
        )
        if what[0] == "error":
            return self.send_json({"error": "scripted"}, what[1])
        base = {
            "model": body.get("model"),
            "created_at": "2026-11-28T00:00:00Z",
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": what[-1],
            "eval_count": 20,
            "total_duration": 1,
        }
        text = what[1]
        answer = {
            **base,
            **({"message": {"role": "assistant", "content": text}} if path == "/api/chat" else {"response": text}),
        }
        return self.send_json(answer) if body.get("stream") is False else self.send_lines([answer])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


def main():
    global STATE  # noqa: PLW0603
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=4900)
    parser.add_argument("--log")
    arguments = parser.parse_args()
    STATE = State(arguments.log)
    Server(("127.0.0.1", arguments.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
