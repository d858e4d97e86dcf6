// One memory: its text, why it was found, and its story.
import { html, useLayoutEffect, useRef, useState } from "./preact.js";
import { api } from "./api.js";
import { forget, pin, recover, retype, rewrite, tag } from "./changes.js";
import { useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { say } from "./notice.js";
import { Diff, MemoryLine, Placeholder, Project, Reading, Relevance, Time, Type, useFocus } from "./parts.js";
import { setParams, to } from "./route.js";
import { because, cut, fate, tagsOf, visible } from "./words.js";

const TYPES = ["fact", "preference", "decision", "learning", "issue", "rule"];

async function read(id, query, filters, signal) {
  const memory = await api("memories.get", { id, include_deleted: true, with_parts: true }, { signal });
  const given = Object.fromEntries(Object.entries(filters || {}).filter(([, value]) => value));
  const [history, similar, why] = await Promise.all([
    api("memories.history", { id: memory.id }, { signal }),
    memory.is_deleted ? { results: [] } : api("memories.similar", { id: memory.id, k: 6 }, { signal }).catch(() => ({ results: [] })),
    query ? api("memories.recall", { query, limit: 50, explainId: memory.id, ...given }, { signal }) : null,
  ]);
  return { memory, history: history.history, similar: similar.results.filter((row) => row.score >= 0.3), explained: why?.explained };
}

export function MemoryScreen({ route }) {
  const id = route.parts[0] || "";
  return html`<div class="one-memory"><${MemoryDetail} key=${id} id=${id} query=${route.params.why || ""} isScreen=${true} onChange=${() => {}} /></div>`;
}

export function MemoryDetail({ id, query, filters, isScreen, onChange, onClose }) {
  const [editing, setEditing] = useState(false);
  const load = useLoad(`${id} ${query || ""}`, (signal) => read(id, query, filters, signal));
  const memory = load.data?.memory;
  const gone = Boolean(memory?.is_deleted);
  const rows = memory ? [memory] : [];
  const done = () => {
    load.reload();
    onChange();
  };
  const heading = useFocus();
  useKeys({
    e: ["edit the text", () => memory && !gone && setEditing(true)],
    ...(isScreen && {
      p: ["pin or unpin", () => !gone && pin(rows, done)],
      f: ["forget", () => !gone && forget(rows, done)],
      r: ["recover", () => gone && recover(rows, done)],
    }),
    c: ["copy the link to this memory", () => copyLink(id)],
  });
  if (!memory) {
    return html`<aside class="detail" aria-label="Memory"><${Reading} load=${load} what="the memory" />
      ${load.error ? null : html`<${Placeholder} rows=${4} />`}</aside>`;
  }
  return html`<aside class="detail" aria-label="Memory">
    <header><h2 ref=${heading} tabIndex="-1">${gone ? "Forgotten memory" : "Memory"} <code>${memory.id.slice(0, 8)}</code></h2>
      ${onClose ? html`<a href=${to(["memory", memory.id])}>Whole page</a><button class="plain" aria-label="Close" onClick=${onClose}>×</button>` : null}</header>
    <${Reading} load=${load} what="the memory" />
    ${editing
      ? html`<${Editor} memory=${memory} close=${() => setEditing(false)} done=${done} />`
      : html`<p class=${`text ${gone ? "is-gone" : ""}`}>${visible(memory.content)}</p>`}
    ${!editing && html`<div class="actions">
      ${gone
        ? html`<button onClick=${() => recover(rows, done)}>Recover <kbd>r</kbd></button>`
        : html`<button onClick=${() => setEditing(true)}>Edit <kbd>e</kbd></button>
          <button onClick=${() => pin(rows, done)}>${memory.pinned ? "Unpin" : "Pin"} <kbd>p</kbd></button>
          <button onClick=${() => forget(rows, done)}>Forget <kbd>f</kbd></button>`}
      <button class="plain" onClick=${() => copyLink(id)}>Copy link</button></div>`}
    <${Facts} memory=${memory} gone=${gone} done=${done} />
    ${query ? html`<${Why} query=${query} explained=${load.data.explained} />` : null}
    ${memory.parts?.length > 1 ? html`<details><summary>The whole text, of ${memory.parts.length} parts</summary>
      ${memory.parts.map((part) => html`<p class="text">${visible(part.content ?? "…")}</p>`)}</details>` : null}
    <${Story} history=${load.data.history} memory=${memory} />
    ${load.data.similar.length ? html`<section><h3>Similar</h3><ul class="lines small">${load.data.similar.map((row) =>
      html`<${MemoryLine} key=${row.id} row=${row} onOpen=${isScreen ? undefined : () => setParams({ open: row.id })} />`)}</ul></section>` : null}
  </aside>`;
}

function copyLink(id) {
  const address = `${location.origin}/${to(["memory", id])}`;
  if (!navigator.clipboard) return say(address);
  return navigator.clipboard.writeText(address).then(() => say("The link is copied."), () => say(address));
}

function Facts({ memory, gone, done }) {
  const setTags = (event) => {
    const tags = event.target.value.split(",").map((one) => one.trim()).filter(Boolean);
    if (tags.join() !== tagsOf(memory.tags).join()) tag([memory], tags, done, { instead: true });
  };
  const types = TYPES.includes(memory.type) ? TYPES : [memory.type, ...TYPES];
  return html`<dl class="facts">
    <dt>Type</dt><dd>${gone ? html`<${Type} type=${memory.type} />` : html`<select aria-label="Type" value=${memory.type}
      onChange=${(event) => retype(memory, event.target.value, done)}>${types.map((type) => html`<option value=${type}>${cut(type, 40)}</option>`)}</select>`}</dd>
    <dt>Tags</dt><dd>${gone ? cut(memory.tags || "none", 200) : html`<input aria-label="Tags" value=${memory.tags || ""} placeholder="none" autocomplete="off" onChange=${setTags} />`}</dd>
    <dt>Project</dt><dd><${Project} project=${memory.project} /></dd>
    <dt>Said by</dt><dd>${cut(memory.who || "unknown", 80)}</dd>
    <dt>Remembered</dt><dd><${Time} at=${memory.created_at} /></dd>
    <dt>Used</dt><dd>${memory.access_count ? html`${memory.access_count}×, last <${Time} at=${memory.last_accessed} />` : "not yet"}</dd>
    ${memory.session_id ? html`<dt>Session</dt><dd><code>${cut(memory.session_id, 60)}</code></dd>` : null}
    ${memory.source_path ? html`<dt>File</dt><dd><code>${cut(memory.source_path, 120)}</code></dd>` : null}
    ${memory.visibility !== "global" ? html`<dt>Read by</dt><dd>${cut(memory.agent_id, 60)} (${cut(memory.visibility, 20)})</dd>` : null}
  </dl>`;
}

function Why({ query, explained }) {
  if (!explained) return null;
  const { explanation } = explained;
  return html`<section class="why"><h3>Why it is here: “${cut(query, 60)}”</h3>
    ${explanation ? html`<p><${Relevance} value=${explanation.relevance} /></p><ul>${because(explanation).map((line) => html`<li>${line}</li>`)}</ul>` : null}
    ${explained.outcome !== "returned" ? html`<p>${fate(explained)}</p>` : null}
    ${explanation ? html`<details><summary>Numbers</summary><table><tbody>
      ${explanation.legs.map((leg) => html`<tr><td>${leg.leg}</td><td>${leg.rank ? `rank ${leg.rank}` : "not found by it"}</td><td>${leg.score}</td></tr>`)}
      <tr><td>base</td><td></td><td>${explanation.base}</td></tr>
      ${explanation.moves.map((move) => html`<tr><td>${move.stage}</td><td></td><td>${move.points > 0 ? "+" : ""}${move.points}</td></tr>`)}
      <tr><td>score</td><td></td><td>${explanation.score}</td></tr>
      <tr><td>coverage</td><td></td><td>${explanation.coverage}</td></tr>
      <tr><td>standing</td><td>spreads</td><td>${explanation.standing ?? "none"}</td></tr></tbody></table></details>` : null}
  </section>`;
}

function Story({ history, memory }) {
  return html`<section><h3>Story</h3><ol class="story">
    ${[...history].reverse().map((event) => html`<li key=${event.id}>
      <p><b>${cut(event.event.replace(/_/g, " "), 40)}</b> by ${cut(event.changedBy, 40)}${event.reason ? html` · ${cut(event.reason, 160)}` : null} · <${Time} at=${event.createdAt} /></p>
      ${event.oldContent && event.newContent && event.oldContent !== event.newContent
        ? html`<${Diff} before=${event.oldContent} after=${event.newContent} />` : null}
      ${event.sessionId ? html`<p class="meta">in session <code>${cut(event.sessionId, 60)}</code></p>` : null}</li>`)}
    ${history.length ? null : html`<li>No change is recorded since <${Time} at=${memory.created_at} />.</li>`}</ol></section>`;
}

// Edits in place. If somebody else changed the memory meanwhile, both texts are shown.
function Editor({ memory, close, done }) {
  const [text, setText] = useState(memory.content);
  const [base, setBase] = useState(memory);
  const [problem, setProblem] = useState("");
  const [theirs, setTheirs] = useState(null);
  const box = useRef(null);
  useLayoutEffect(() => {
    box.current.focus();
    box.current.setSelectionRange(text.length, text.length);
  }, []);
  const save = async () => {
    if (!text.trim() || text === memory.content) return close();
    try {
      await rewrite(base, text, done);
      return close();
    } catch (error) {
      if (error.code === "version_conflict" || (error.status === 409 && error.body.currentVersion)) {
        const now = await api("memories.get", { id: memory.id, include_deleted: true }).catch(() => null);
        if (now) {
          setTheirs(now);
          return setProblem("It was changed meanwhile. Nothing is saved yet.");
        }
      }
      return setProblem(`Not saved: ${error.message}`);
    }
  };
  useKeys({
    "Ctrl+Enter": ["save", save],
    Escape: ["leave the text as it was", close],
  });
  const keepMine = () => {
    setBase(theirs);
    setTheirs(null);
    setProblem("Save again to replace the other text.");
  };
  return html`<div class="editor">
    <textarea ref=${box} aria-label="Text" rows="6" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
    ${problem ? html`<p class="is-bad" role="alert">${problem}</p>` : null}
    ${theirs ? html`<${Diff} before=${text} after=${theirs.content} />
      <div class="actions"><button onClick=${keepMine}>Keep mine</button><button onClick=${() => (close(), done())}>Take theirs</button></div>`
      : html`<div class="actions"><button class="primary" onClick=${save}>Save <kbd>Ctrl+Enter</kbd></button><button class="plain" onClick=${close}>Cancel <kbd>Esc</kbd></button></div>`}
  </div>`;
}
