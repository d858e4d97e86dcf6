// Requests by the name of the operation. Paths come from the declarations of the daemon, never from here.
import { OPERATIONS } from "./operations.js";

export class ApiError extends Error {
  constructor(status, body) {
    super(body.error || `The daemon answered ${status}`);
    this.status = status;
    this.code = body.code;
    this.body = body;
  }
}

export const UNREACHABLE = "The daemon does not answer. Nothing was changed; it is tried again.";

const caller = { agent: "", token: "" };

export function actAs(agent) {
  caller.agent = agent || "";
}

const KEPT = "signet.token";

// Takes the token that this tab has, or gets it for the code of `signet dashboard`. It is in no address and in no cookie.
export async function takeToken(code) {
  caller.token = sessionStorage.getItem(KEPT) || "";
  if (!code) return;
  caller.token = (await api("auth.page_token", { code })).token;
  sessionStorage.setItem(KEPT, caller.token);
}

// Returns the response with a body that is read elsewhere. Raises ApiError.
async function request(name, fields, accept, { signal, keepalive = false }) {
  const [method, path, changes] = OPERATIONS[name];
  const rest = { ...fields };
  const target = path.replace(/\{(\w+)\}/g, (_, key) => {
    const value = rest[key];
    delete rest[key];
    return encodeURIComponent(value);
  });
  const headers = { accept, "x-signet-actor-type": "operator" };
  if (changes) headers["x-signet-actor"] = "dashboard";
  else headers["x-signet-observe"] = "1";
  if (caller.agent) headers["x-signet-agent-id"] = caller.agent;
  if (caller.token) headers["x-signet-owner-token"] = caller.token;
  let url = target;
  let body;
  if (method === "GET") {
    const query = new URLSearchParams(Object.entries(rest).filter(([, value]) => value !== undefined && value !== ""));
    if ([...query].length) url += `?${query}`;
  } else {
    headers["content-type"] = "application/json";
    body = JSON.stringify(rest);
  }
  let response;
  try {
    response = await fetch(url, { method, headers, body, signal, keepalive, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { error: UNREACHABLE, code: "unreachable" });
  }
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => ({})));
  return response;
}

// `fields` are the parameters of the path and the fields of the request, by the names of the API document.
// Reads are marked as those of a person who looks: they do not count as a use of a memory.
export async function api(name, fields = {}, options = {}) {
  const response = await request(name, fields, "application/json", options);
  return response.json();
}

// Calls `heard` with each event until the stream ends.
export async function stream(name, fields, heard, signal) {
  const response = await request(name, fields, "text/event-stream", { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const line of events.flatMap((event) => event.split("\n"))) if (line.startsWith("data: ")) heard(JSON.parse(line.slice(6)));
  }
}
