// Sessions: what was said, and beside each prompt what was given, why, and what was left out.
import { html, useEffect, useRef, useState } from "./preact.js";
import { api } from "./api.js";
import { useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { Command, Diff, Empty, Project, Reading, Relevance, Time, useModal } from "./parts.js";
import { go, setParams, to } from "./route.js";
import { Now, Why, WhyNot, where } from "./why-not.js";
import { count, cut, isWeak, moment, projectName, visible } from "./words.js";

const LISTED = 60;
const LIVE_MS = 10_000;
const TYPING_MS = 120;

// The sessions, or those in which these words were said, each with them.
async function listed(q, project, signal) {
  if (!q) return (await api("sessions.list", { state: "all", project, limit: LISTED }, { signal })).sessions;
  const { hits } = await api("sessions.search", { query: q, project, limit: 20 }, { signal });
  return hits.map((hit) => ({ ...hit, key: hit.sessionKey, prompt: hit.excerpt, startedAt: hit.at || hit.updatedAt }));
}

export function Sessions({ route }) {
  const [at, setAt] = useState(0);
  const { project, q = "" } = route.params;
  const load = useLoad(`sessions ${project || ""} ${q}`, (signal) => listed(q, project, signal), { everyMs: LIVE_MS, delayMs: q ? TYPING_MS : 0 });
  const rows = load.data || [];
  useKeys({
    "/": ["search what was said", () => document.getElementById("said").select()],
    j: ["next session", () => setAt(Math.max(0, Math.min(rows.length - 1, at + 1)))],
    k: ["session before", () => setAt(Math.max(0, at - 1))],
    Enter: ["open the session", () => rows[at] && go(to(["session", rows[at].key]))],
  });
  return html`<div class="sessions"><div class="search"><input id="said" type="search" aria-label="Search what was said" placeholder="Search what was said" value=${q}
      onInput=${(event) => (setAt(0), setParams({ q: event.target.value }, { replace: true }))} /></div><${Reading} load=${load} what="the sessions" rows=${6} />
    <ul class="lines">${rows.map((row, index) => html`<li key=${row.key} class=${`line ${index === at ? "is-cursor" : ""}`}><a class="main" href=${to(["session", row.key])} title=${cut(row.key, 80)}>
      <span class="head"><span class="words">${row.prompt ? cut(row.prompt, 200) : "A session of which no prompt is kept"}</span></span>
      <span class="meta"><span>${cut(row.harness || "unknown program", 30)}</span><${Project} project=${row.project} /><span>${moment(row.startedAt)}</span>
        ${q ? null : html`<span>${count(row.prompts, "prompt")}${row.prompts ? `, memories given to ${row.promptsGiven || "none"}` : ""}</span>`}${row.active ? html`<span class="is-ok">active</span>` : null}</span></a></li>`)}</ul>
    ${!load.data || rows.length ? null : q ? html`<${Empty}><p>No session has these words.</p></${Empty}>` : html`<${Empty}><h2>No session yet</h2><p>Connect a program, and its next session appears here: <${Command} text="signet setup" /></p></${Empty}>`}
  </div>`;
}

// Pages of one version belong together; while it is that of `kept.current`, nothing is read again.
async function readSession(key, kept, signal) {
  const read = (query) => api("sessions.conversation", { key, ...query }, { signal });
  if (kept.current?.key === key && (await read({ limit: 1 })).version === kept.current.version) return kept.current;
  for (;;) {
    let page = await read({});
    const { version } = page, rows = [...page.rows];
    for (; page.next !== null && page.version === version; rows.push(...page.rows)) page = await read({ after: page.next });
    if (page.version === version) return (kept.current = { key, rows, version, cut: page.cut });
  }
}

export function SessionScreen({ route }) {
  const [key, number] = route.parts;
  const [card, setCard] = useState(null);
  const kept = useRef(null);
  const load = useLoad(`session ${key}`, (signal) => readSession(key, kept, signal), { everyMs: LIVE_MS });
  const rows = load.data?.rows || [];
  const prompts = Math.max(0, ...rows.map((row) => row.search?.number || 0));
  const here = Number(number) || 0;
  useEffect(() => {
    if (here && load.data) document.getElementById(`prompt-${here}`)?.scrollIntoView({ block: "start" });
  }, [here, Boolean(load.data)]);
  const move = (by) => prompts && go(to(["session", key, Math.min(prompts, Math.max(1, here + by))]), { replace: true });
  useKeys({
    j: ["next prompt", () => move(1)],
    k: ["prompt before", () => move(-1)],
    w: ["why was a memory not given?", () => document.querySelector(`#prompt-${here || 1} .why-not input`)?.focus()],
    s: ["a card of the prompt, for a picture", () => prompts && setCard(here || 1)],
    Escape: ["back to the sessions", () => (document.activeElement.matches("input") ? document.activeElement.blur() : go(to("sessions")))],
  });
  if (!load.data) return html`<${Reading} load=${load} what="the session" rows=${6} />`;
  const first = rows.map((row) => row.search).find(Boolean);
  const asked = rows.find((row) => row.search?.kind === "prompt" || row.turn?.role === "user");
  return html`<div class="session"><header class="session-head"><a href=${to("sessions")}>All sessions</a><h2>${cut(textOf(asked) || "A session", 80)}</h2>
    <p class="meta">${first ? html`<span>${cut(first.harness || "", 30)}</span><${Project} project=${first.project} /><span>${moment(first.at)}</span>` : null}
      <span>${count(prompts, "prompt")}, memories given to ${rows.filter((row) => row.search?.kind === "prompt" && row.search.given).length || "none"}</span><code>${cut(key, 40)}</code></p>
    <p class="meta">Beside each prompt: the memories that the agent was given with it, each as one line with tags, id and date; why; and what was left out.</p></header>
    <${Reading} load=${load} what="the session" />
    ${rows.length ? null : html`<${Empty}><p>Nothing is kept of this session: its transcript was erased, or it ended before it was asked anything.</p></${Empty}>`}
    <ol class="turns">${rows.map((row, index) => html`<${Row} key=${row.search?.id || `turn ${index}`} row=${row} show=${setCard} isHere=${row.search?.number === here && here > 0} />`)}</ol>${load.data.cut ? html`<p class="meta">The session is longer; this is its beginning.</p>` : null}
    ${card ? html`<${Card} row=${rows.find((row) => row.search?.number === card)} close=${() => setCard(null)} />` : null}</div>`;
}

const textOf = (row) => (row?.turn ? row.turn.content : row?.search?.prompt);

// One prompt and what it was given, for a picture: no path tells where it was.
function Card({ row, close }) {
  const { search } = row;
  const shown = (text) => cut(search.project ? text.replaceAll(search.project, projectName(search.project)) : text, 600);
  useKeys({ Escape: ["close", close] });
  return html`<dialog class="help card" aria-label="A prompt and what it was given" ref=${useModal()} onClose=${close}>
    <p class="meta"><span>${cut(search.harness || "", 30)}</span><span>${moment(search.at)}</span></p><p class="text">${shown(textOf(row) || "The text was erased.")}</p>
    <h3>From memory: ${search.outcome}</h3>
    <ul class="given">${search.memories.filter((one) => one.given).map((one) => html`<li key=${one.id}>${shown(one.contentThen ?? one.content ?? "forgotten since")} <${Relevance} value=${one.relevance} /></li>`)}</ul>
    <p class="actions"><button onClick=${close}>Close</button></p></dialog>`;
}

function Row({ row, show, isHere }) {
  const { turn, search, compacted } = row;
  const text = textOf(row);
  const who = turn ? turn.role : { start: "start of the session", prompt: "user", recall: "search", tool: "search by a tool" }[search.kind];
  return html`<li id=${search?.number ? `prompt-${search.number}` : undefined} class=${`turn ${who === "user" ? "is-user" : ""} ${isHere ? "is-here" : ""}`}>
    ${compacted ? html`<p class="compacted">Compacted here: what is given next may repeat.</p>` : null}
    <div class="said"><p class="meta"><span>${who}${search?.number ? `, prompt ${search.number}` : ""}</span>${search || turn.at ? html`<${Time} at=${turn?.at || search.at} />` : null}</p>
      ${text ? html`<p class="text">${visible(text)}</p>` : search?.kind === "start" ? null : html`<p class="meta">The text was erased.</p>`}</div>
    ${search ? html`<${Given} search=${search} show=${show} />` : null}</li>`;
}

// What a prompt was given and what was left out.
function Given({ search, show }) {
  const isShown = (memory) => memory.given || (!search.given && memory.outcome === "received" && !isWeak(memory));
  const shown = search.memories.filter(isShown);
  const left = search.memories.filter((memory) => !isShown(memory));
  const reasons = new Map();
  for (const memory of left) reasons.set(memory.why, (reasons.get(memory.why) || 0) + 1);
  const asked = search.prompt && search.kind === "prompt" ? search : null;
  const headline = `${search.outcome.charAt(0).toUpperCase()}${search.outcome.slice(1)}`;
  return html`<aside class="given" aria-label="What it was given"><p class="meta"><b>${headline}</b><span>${Math.round(search.ms)} ms${search.given ? `, ${count(search.characters, "character")} with date and heading` : ""}</span></p>
    <ul>${shown.map((memory) => html`<${GivenLine} key=${memory.id} memory=${memory} asked=${asked} />`)}</ul>
    ${left.length ? html`<details><summary>${left.length} ${shown.length ? "others " : ""}left out${reasons.size > 1 ? `: ${[...reasons].map(([why, number]) => `${why} (${number})`).join("; ")}` : `, ${left.length > 1 ? "each " : ""}because ${left[0].why}`}</summary>
      <ul>${left.map((memory) => html`<${GivenLine} key=${memory.id} memory=${memory} asked=${asked} />`)}</ul></details>` : null}
    ${asked ? html`<p class="actions"><${Now} search=${asked} /> <button class="plain" onClick=${() => show(search.number)}>Show it as a card, for a screenshot</button></p><${WhyNot} search=${asked} />` : null}</aside>`;
}

// In the words that the memory had then.
function GivenLine({ memory, asked }) {
  const { contentThen: then, content, outcome, why, earlier, changed, forgotten, seemsUsed } = memory;
  return html`<li><a href=${to(["memory", memory.id])}>${forgotten ? html`<s>forgotten since</s>` : visible(then ?? content)}</a>
    <span class="meta"><${Relevance} value=${memory.relevance} />${seemsUsed ? html`<span class="is-ok">✓ seems used</span>` : null}${outcome === "given" ? null : html`<span>${why}${earlier ? `: it was given ${where(earlier)}` : ""}</span>`}${changed && !forgotten && !then ? html`<span>its tags or other details were changed since</span>` : null}</span>
    ${then && !forgotten ? html`<details><summary>These were its words then; it was changed since</summary><${Diff} before=${then} after=${content} /></details>` : null}
    ${asked && !memory.forgotten ? html`<${Why} search=${asked} memory=${memory} label=${`Why was it ${memory.given ? "given" : "left out"}?`} />` : null}</li>`;
}
