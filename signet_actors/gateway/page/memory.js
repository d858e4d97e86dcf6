// One memory: its text, why it was found, and its story.
import { html, useState } from "./preact.js";
import { api } from "./api.js";
import { REASON, forget, move, pin, recover, retype, rewrite, tag } from "./changes.js";
import { useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { copyLink } from "./notice.js";
import { Because, Command, Diff, MemoryLine, Project, Reading, Relevance, TYPES, Time, Type, useAppeared, useFocus } from "./parts.js";
import { setParams, to } from "./route.js";
import { count, cut, sentence, tagsOf, visible, whoOf } from "./words.js";

const EVENTS = 200;

async function read(id, query, filters, signal) {
  const memory = await api("memories.get", { id, include_deleted: true, with_parts: true }, { signal });
  const given = Object.fromEntries(Object.entries(filters || {}).filter(([, value]) => value));
  const [{ history }, timeline, similar, why] = await Promise.all([
    api("memories.history", { id: memory.id }, { signal }),
    api("timeline.get", { id: memory.id, order: "desc", limit: EVENTS }, { signal }).catch(() => null), // a token may not read it
    memory.is_deleted ? { results: [] } : api("memories.similar", { id: memory.id, k: 6 }, { signal }).catch(() => ({ results: [] })),
    query ? api("memories.recall", { query, limit: 50, explainId: memory.id, ...given }, { signal }) : null,
  ]);
  const changed = new Map(history.map((event) => [event.id, event]));
  const events = timeline ? timeline.events : [...history].reverse().map((event) => ({ timestamp: event.createdAt, source: "history", event: event.event, details: event }));
  const story = events.filter((one) => one.source !== "job" || one.event === "dead").map((one) => ({ ...one, change: changed.get(one.details.id) }));
  return { memory, story, more: Boolean(timeline?.hasMore), similar: similar.results.filter((row) => row.score >= 0.3), explained: why?.explained };
}

export function MemoryScreen({ route: { parts: [id = ""], params } }) {
  return html`<div class="one-memory"><${MemoryDetail} key=${id} id=${id} query=${params.why || ""} isScreen=${true} onChange=${() => {}} /></div>`;
}

export function MemoryDetail({ id, query, filters, isScreen, onChange, onClose }) {
  const [editing, setEditing] = useState(false);
  const load = useLoad(`${id} ${query || ""}`, (signal) => read(id, query, filters, signal));
  const { memory } = load.data || {};
  const gone = Boolean(memory?.is_deleted);
  const rows = memory ? [memory] : [];
  const done = () => (load.reload(), onChange());
  const heading = useFocus();
  const copy = () => copyLink(`${location.origin}/${to(["memory", id])}`);
  useKeys({
    e: ["edit the text", () => memory && !gone && setEditing(true)],
    ...(isScreen && {
      p: ["pin or unpin", () => !gone && pin(rows, done)],
      f: ["forget", () => !gone && forget(rows, done)],
      r: ["recover", () => gone && recover(rows, done)],
      m: ["move to a project", () => document.getElementById("project")?.select()],
    }),
    c: ["copy the link to this memory", copy],
  });
  if (!memory) return html`<aside class="detail" aria-label="Memory"><${Reading} load=${load} what="the memory" rows=${4} /></aside>`;
  return html`<aside class="detail" aria-label="Memory">
    <header><h2 ref=${heading} tabIndex="-1">${gone ? "Forgotten memory" : "Memory"}</h2>
      ${onClose ? html`<a href=${to(["memory", memory.id])}>Whole page</a><button class="plain" aria-label="Close" onClick=${onClose}>×</button>` : html`<a href=${to("memories")}>All memories</a>`}</header>
    <${Reading} load=${load} what="the memory" />
    ${editing ? html`<${Editor} memory=${memory} close=${() => setEditing(false)} done=${done} />` : html`<p class=${`text ${gone ? "is-gone" : ""}`}>${visible(memory.content)}</p>
      <div class="actions">${gone
        ? html`<button onClick=${() => recover(rows, done)}>Recover <kbd>r</kbd></button>`
        : html`<button onClick=${() => setEditing(true)}>Edit <kbd>e</kbd></button>
          <button onClick=${() => pin(rows, done)}>${memory.pinned ? "Unpin" : "Pin"} <kbd>p</kbd></button>
          <button onClick=${() => forget(rows, done)}>Forget <kbd>f</kbd></button>`}
      <button class="plain" onClick=${copy}>Copy link</button></div>`}
    <${Facts} memory=${memory} story=${load.data.story} gone=${gone} done=${done} />
    ${query && !gone ? html`<${Why} query=${query} explained=${load.data.explained} />` : null}
    ${memory.parts?.length > 1 ? html`<details><summary>The whole text, of ${memory.parts.length} parts</summary>
      ${memory.parts.map((part) => html`<p class="text">${visible(part.content ?? "…")}</p>`)}</details>` : null}
    <${Story} ...${load.data} />
    ${load.data.similar.length ? html`<section><h3>Similar</h3><ul class="lines small">${load.data.similar.map((row) =>
      html`<${MemoryLine} key=${row.id} row=${row} onOpen=${isScreen ? undefined : () => setParams({ open: row.id })} />`)}</ul></section>` : null}
  </aside>`;
}

function Facts({ memory, story, gone, done }) {
  const given = new Set(story.filter((one) => one.event === "given").map((one) => one.details.sessionKey)).size;
  const setTags = (event) => {
    const tags = event.target.value.split(",").map((one) => one.trim()).filter(Boolean);
    if (tags.join() !== tagsOf(memory.tags).join()) tag([memory], tags, done, { instead: true });
  };
  const put = (value) => (event) => {
    event.target.value = value || "";
  };
  const restore = (value) => (event) => event.key === "Escape" && put(value)(event);
  const moveOnEnter = (event) => {
    if (event.key === "Escape") put(memory.project)(event);
    else if (event.key === "Enter" && event.target.value.trim() !== (memory.project || "")) move([memory], event.target.value.trim(), done);
  };
  const types = TYPES.includes(memory.type) ? TYPES : [memory.type, ...TYPES];
  return html`<dl class="facts">
    <dt>Type</dt><dd>${gone ? html`<${Type} type=${memory.type} />` : html`<select aria-label="Type" value=${memory.type}
      onChange=${(event) => retype(memory, event.target.value, done)}>${types.map((type) => html`<option value=${type}>${cut(type, 40)}</option>`)}</select>`}</dd>
    <dt>Tags</dt><dd>${gone ? cut(memory.tags || "none", 200) : html`<input aria-label="Tags" value=${memory.tags || ""} placeholder="none" autocomplete="off" onKeyDown=${restore(memory.tags)} onChange=${setTags} />`}</dd>
    <dt>Project</dt><dd>${gone ? html`<${Project} project=${memory.project} />` : html`<input id="project" aria-label="Project" value=${memory.project || ""} placeholder="none" autocomplete="off"
      title="Enter moves it" onKeyDown=${moveOnEnter} onBlur=${put(memory.project)} />`}</dd>
    <dt>Said by</dt><dd>${cut(whoOf(memory) || "nobody named", 80)}</dd>
    <dt>Remembered</dt><dd><${Time} at=${memory.created_at} /></dd>
    <dt>Used</dt><dd>${given ? `given to ${count(given, "session")}, ` : ""}${memory.access_count ? html`found ${count(memory.access_count, "time")} by agents, last <${Time} at=${memory.last_accessed} />` : given ? "not searched for yet" : "not yet by an agent"}</dd>
    <dt>Id</dt><dd><code>${memory.id}</code></dd>
    ${memory.session_id ? html`<dt>Session</dt><dd><a href=${to(["session", memory.session_id])}><code>${cut(memory.session_id, 60)}</code></a></dd>` : null}
    ${memory.source_path ? html`<dt>File</dt><dd><code>${cut(memory.source_path, 120)}</code></dd>` : null}
    ${memory.visibility !== "global" ? html`<dt>Read by</dt><dd>${cut(memory.agent_id, 60)} (${cut(memory.visibility, 20)})</dd>` : null}
  </dl>`;
}

function Why({ query, explained }) {
  if (!explained) return null;
  const { explanation: why, why: reason, outcome } = explained;
  const numbers = why ? [
    ...why.legs.map((leg) => [leg.leg, leg.rank ? `rank ${leg.rank}` : "not found by it", leg.score]), ["base", "", why.base],
    ...why.moves.map((move) => [move.stage, "", `${move.points > 0 ? "+" : ""}${move.points}`]), ...["score", "coverage", "standing"].map((name) => [name, "", why[name] ?? "none"]),
  ] : [];
  return html`<section class="why"><h3>How it fits “${cut(query, 60)}”</h3>
    <p><${Relevance} value=${why?.relevance} /> ${outcome === "returned" ? "" : sentence(reason)}</p><${Because} explanation=${why} />
    ${why ? html`<details><summary>Numbers</summary><table><tbody>${numbers.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></details>` : null}
  </section>`;
}

const TOLD = {
  created: "Remembered", updated: "Edited", deleted: "Forgotten", recovered: "Recovered", merged: "Merged with another one", none: "Noted",
  given: "Given to a session", offered: "Looked at for a session, not given", rated: "Rated", dead: "Work on it failed",
};

function told({ source, event, details, change }) {
  if (source === "decision") return `A model proposed to ${cut(details.action, 20)} (${cut(event.replace(/_/g, " "), 30)})`;
  const fields = event === "updated" ? Object.keys(change?.metadata?.after || {}) : [];
  return `${TOLD[event] || cut(event.replace(/_/g, " "), 40)}${fields.length ? `: ${cut(fields.join(", "), 60)}` : ""}${details.score !== undefined ? ` ${details.score > 0 ? "+" : ""}${details.score}` : ""}`;
}

function Event({ event }) {
  const { timestamp, details, change } = event;
  const key = details.sessionKey || details.sessionId;
  return html`<li><p><b>${told(event)}</b>${details.changedBy === "dashboard" ? " on the page" : details.changedBy && details.changedBy !== "daemon" ? ` by ${cut(details.changedBy, 40)}` : ""}${details.reason && details.reason !== REASON ? html` · ${cut(details.reason, 160)}` : null} · <${Time} at=${timestamp} /></p>
    ${change?.oldContent && change.newContent && change.oldContent !== change.newContent ? html`<${Diff} before=${change.oldContent} after=${change.newContent} />` : null}
    ${details.error ? html`<p class="meta">${cut(details.error, 200)}</p>` : null}
    ${key ? html`<p class="meta"><a href=${to(["session", key])}>${cut(details.harness || "the session", 30)}</a>${details.project ? html`<${Project} project=${details.project} />` : null}</p>` : null}</li>`;
}

// What happened to the memory, the last event first: its changes, the sessions it was given to, its ratings, what a model proposed.
function Story({ story, more, memory }) {
  return html`<section><h3>Story</h3><ol class="story">${story.map((event) => html`<${Event} event=${event} />`)}
    ${story.length ? null : html`<li>No change is recorded since <${Time} at=${memory.created_at} />.</li>`}
    ${more ? html`<li>Older events: <${Command} text=${`signet timeline ${memory.id}`} /></li>` : null}</ol></section>`;
}

// Edits in place. If somebody else changed the memory meanwhile, both texts are shown.
function Editor({ memory, close, done }) {
  const [text, setText] = useState(memory.content);
  const [base, setBase] = useState(memory);
  const [problem, setProblem] = useState("");
  const [theirs, setTheirs] = useState(null);
  const box = useAppeared((element) => (element.focus(), element.setSelectionRange(text.length, text.length)));
  const save = async () => {
    if (!text.trim() || text === memory.content) return close();
    try {
      await rewrite(base, text, done);
      return close();
    } catch (error) {
      const isStale = error.code === "version_conflict" || (error.status === 409 && error.body.currentVersion);
      const now = isStale ? await api("memories.get", { id: memory.id, include_deleted: true }).catch(() => null) : null;
      setTheirs(now);
      return setProblem(now ? "It was changed meanwhile. Nothing is saved yet." : `Not saved: ${error.message}`);
    }
  };
  useKeys({ "Ctrl+Enter": ["save", save], Escape: ["leave the text as it was", close] });
  const keepMine = () => (setBase(theirs), setTheirs(null), setProblem("Save again to replace the other text."));
  return html`<div class="editor">
    <textarea ref=${box} aria-label="Text" rows="6" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
    ${problem ? html`<p class="is-bad" role="alert">${problem}</p>` : null}
    ${theirs ? html`<${Diff} before=${text} after=${theirs.content} />
      <div class="actions"><button onClick=${keepMine}>Keep mine</button><button onClick=${() => (close(), done())}>Take theirs</button></div>`
      : html`<div class="actions"><button class="primary" onClick=${save}>Save <kbd>Ctrl+Enter</kbd></button><button class="plain" onClick=${close}>Cancel <kbd>Esc</kbd></button></div>`}
  </div>`;
}
