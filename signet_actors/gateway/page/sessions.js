// Sessions: what was said, and beside each prompt what was given, why, and what was left out.
import { html, useEffect, useMemo, useState } from "./preact.js";
import { api } from "./api.js";
import { conversation, seemsUsed } from "./conversation.js";
import { useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { Command, Empty, Placeholder, Project, Reading, Relevance, Time } from "./parts.js";
import { go, to } from "./route.js";
import { Now, Why, WhyNot } from "./why-not.js";
import { count, cut, outcomeOf, visible } from "./words.js";

const LISTED = 60;
const LIVE_MS = 10_000;
const TURN_CHARS = 4_000;

async function readList(params, signal) {
  const { project } = params;
  const [past, asked] = await Promise.all([
    api("sessions.list_past", { project, limit: LISTED }, { signal }), api("searches.list", { project, limit: 200 }, { signal }),
  ]);
  const rows = new Map(past.sessions.map((one) => [one.sessionKey, { ...one, asked: 0, answered: 0 }]));
  for (const search of [...asked.searches].reverse()) {
    if (!search.sessionKey) continue;
    const row = rows.get(search.sessionKey) || { sessionKey: search.sessionKey, harness: search.harness, project: search.project, turns: 0, prompt: null, asked: 0, answered: 0, updatedAt: search.at };
    row.prompt ||= search.prompt;
    if (search.at > row.updatedAt) row.updatedAt = search.at;
    if (search.kind === "prompt") row.asked += 1;
    if (search.kind === "prompt" && search.given) row.answered += 1;
    rows.set(search.sessionKey, row);
  }
  return [...rows.values()].sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
}

export function Sessions({ route }) {
  const [at, setAt] = useState(0);
  const load = useLoad(`sessions ${route.params.project || ""}`, (signal) => readList(route.params, signal), { everyMs: LIVE_MS });
  const rows = load.data || [];
  useKeys({
    j: ["next session", () => setAt(Math.min(rows.length - 1, at + 1))],
    k: ["session before", () => setAt(Math.max(0, at - 1))],
    Enter: ["open the session", () => rows[at] && go(to(["session", rows[at].sessionKey]))],
  });
  return html`<div class="sessions"><${Reading} load=${load} what="the sessions" />
    ${!load.data && !load.error ? html`<${Placeholder} />` : null}
    <ul class="lines">${rows.map((row, index) => html`<li key=${row.sessionKey} class=${`line ${index === at ? "is-cursor" : ""}`}><a class="main" href=${to(["session", row.sessionKey])}>
      <span class="head"><span class="words">${row.prompt ? cut(row.prompt, 200) : "No prompt was kept"}</span></span>
      <span class="meta"><${Project} project=${row.project} /><span>${cut(row.harness || "unknown program", 30)}</span><${Time} at=${row.updatedAt} />
        ${row.asked ? html`<span>${count(row.asked, "prompt")}, ${row.answered} given something</span>` : null}${row.turns ? html`<span>${count(row.turns, "turn")}</span>` : null}</span></a></li>`)}</ul>
    ${load.data && !rows.length ? html`<${Empty}><h2>No session yet</h2><p>Connect a program, and its next session appears here: <${Command} text="signet setup" /></p></${Empty}>` : null}
  </div>`;
}

async function readTurns(key, signal) {
  const turns = [];
  const { sessions } = await api("sessions.list_past", { prefix: key, limit: 20 }, { signal });
  if (!sessions.some((one) => one.sessionKey === key)) return turns; // it goes on, or was erased
  let after;
  do {
    const page = await api("sessions.transcript", { key, view: "turns", after }, { signal });
    turns.push(...page.turns);
    after = page.nextCursor;
  } while (after !== undefined);
  return turns;
}

async function readSession(key, signal) {
  const [turns, searches] = await Promise.all([
    readTurns(key, signal),
    api("searches.list", { session: key, limit: 200 }, { signal }).then((reply) => reply.searches),
  ]);
  return { turns, searches };
}

export function SessionScreen({ route }) {
  const [key, number] = route.parts;
  const load = useLoad(`session ${key}`, (signal) => readSession(key, signal), { everyMs: LIVE_MS });
  const rows = useMemo(() => (load.data ? conversation(load.data.turns, load.data.searches) : []), [load.data]);
  const numbers = rows.filter((row) => row.search?.number).map((row) => row.search.number);
  const here = Number(number) || 0;
  useEffect(() => {
    if (here && load.data) document.getElementById(`prompt-${here}`)?.scrollIntoView({ block: "start" });
  }, [here, Boolean(load.data)]);
  const move = (by) => {
    const next = by > 0 ? numbers.find((one) => one > here) : [...numbers].reverse().find((one) => one < here);
    if (next) go(to(["session", key, next]), { replace: true });
  };
  useKeys({
    j: ["next prompt", () => move(1)],
    k: ["prompt before", () => move(-1)],
    w: ["why was a memory not given?", () => document.querySelector(`#prompt-${here || numbers[0]} .why-not input`)?.focus()],
    Escape: ["back to the sessions", () => (document.activeElement.matches("input") ? document.activeElement.blur() : go(to("sessions")))],
  });
  if (!load.data) return html`<${Reading} load=${load} what="the session" />${load.error ? null : html`<${Placeholder} />`}`;
  const first = rows.map((row) => row.search).find(Boolean);
  return html`<div class="session"><header class="session-head"><a href=${to("sessions")}>All sessions</a><h2>${cut(key, 80)}</h2>
    <p class="meta">${first ? html`<${Project} project=${first.project} /><span>${cut(first.harness || "", 30)}</span><${Time} at=${first.at} />` : null}
      <span>${count(numbers.length, "prompt")}</span><span>${rows.filter((row) => row.search?.kind === "prompt" && row.search.given).length} given something</span></p></header>
    <${Reading} load=${load} what="the session" />
    ${rows.length ? null : html`<${Empty}><p>Nothing is kept of this session: its transcript was erased, or it ended before it was asked anything.</p></${Empty}>`}
    <ol class="turns">${rows.map((row, index) => html`<${Row} key=${row.search?.id || `turn ${index}`} row=${row} answer=${rows[index + 1]?.turn?.content || ""} before=${rows[index - 1]?.turn?.role === "assistant" ? rows[index - 1].turn.content : undefined} isHere=${row.search?.number === here && here > 0} />`)}</ol></div>`;
}

function Row({ row, answer, before, isHere }) {
  const { turn, search, compacted } = row;
  const text = turn ? turn.content : search.prompt;
  const who = turn ? turn.role : { start: "start of the session", prompt: "user", recall: "search", tool: "search by a tool" }[search.kind];
  return html`<li id=${search?.number ? `prompt-${search.number}` : undefined} class=${`turn ${who === "user" ? "is-user" : ""} ${isHere ? "is-here" : ""}`}>
    ${compacted ? html`<p class="compacted">Compacted here: what is given next may repeat.</p>` : null}
    <div class="said"><p class="meta"><span>${who}</span>${search || turn?.at ? html`<${Time} at=${turn?.at || search.at} />` : null}</p>
      ${text ? html`<p class="text">${cut(text, TURN_CHARS)}</p>` : search?.kind === "start" ? null : html`<p class="meta">The text was erased.</p>`}</div>
    ${search ? html`<${Given} search=${search} text=${text} answer=${answer} before=${before} />` : null}</li>`;
}

// What a prompt was given and what was left out.
function Given({ search, text, answer, before }) {
  const given = search.memories.filter((memory) => memory.given);
  const left = search.memories.filter((memory) => !memory.given);
  const reasons = new Map();
  for (const memory of left) reasons.set(memory.why, (reasons.get(memory.why) || 0) + 1);
  const best = Math.max(0, ...left.map((memory) => memory.relevance ?? 0));
  const outcome = outcomeOf(search);
  const asked = search.prompt && search.kind === "prompt" ? { search, text, before } : null;
  const headline = `${outcome.charAt(0).toUpperCase()}${outcome.slice(1)}${search.given ? `, ${count(search.characters, "character")}` : outcome === "nothing fit" && left.length ? `; the best had ${best.toFixed(2)}` : ""}`;
  return html`<aside class="given" aria-label="What it was given"><p class="meta"><b>${headline}</b><span>${Math.round(search.ms)} ms</span></p>
    <ul>${given.map((memory) => html`<${GivenLine} key=${memory.id} memory=${memory} asked=${asked} isUsed=${seemsUsed(memory.content || "", search.prompt || "", answer)} />`)}</ul>
    ${left.length ? html`<details><summary>Left out: ${[...reasons].map(([why, number]) => `${number}, ${why}`).join("; ")}</summary>
      <ul>${left.map((memory) => html`<${GivenLine} key=${memory.id} memory=${memory} asked=${asked} why=${memory.why} />`)}</ul></details>` : null}
    ${asked ? html`<${Now} ...${asked} /><${WhyNot} ...${asked} />` : null}</aside>`;
}

function GivenLine({ memory, asked, isUsed, why }) {
  return html`<li><a href=${to(["memory", memory.id])}>${memory.forgotten ? html`<s>forgotten since</s>` : visible(memory.content)}</a>
    <span class="meta"><${Relevance} value=${memory.relevance} />${isUsed ? html`<span class="is-ok">✓ seems used</span>` : null}${memory.changed ? html`<span>it has other words now</span>` : null}${why ? html`<span>${why}</span>` : null}</span>
    ${asked && !memory.forgotten ? html`<${Why} ...${asked} memory=${memory} />` : null}</li>`;
}
