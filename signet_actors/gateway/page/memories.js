// Memories: search as you type, and mend what is found.
import { html, useEffect, useMemo, useRef, useState } from "./preact.js";
import { api, stream } from "./api.js";
import { changedHere, remember } from "./changes.js";
import { Filters } from "./filters.js";
import { useKeys } from "./keys.js";
import { useLines } from "./lines.js";
import { useStream } from "./live.js";
import { useLoad } from "./load.js";
import { MemoryDetail } from "./memory.js";
import { Command, Empty, Reading } from "./parts.js";
import { current, setParams } from "./route.js";
import { count, cut, day, isWeak, projectName } from "./words.js";

const TYPING_MS = 30;
const PAGE = 50;
const FOUND = 50;
const SETTLED_MS = 400;
const NEAREST = 3;

// The conditions of an address, as fields of a request.
const conditions = ({ type, tags, who, pinned, since, project }) => ({ type, tags, who, pinned: pinned ? true : undefined, since, project });

const wordsOf = (text) => text?.split(/\s+/).slice(0, 20).join(" ").slice(0, 500); // as many as the daemon takes

async function read(params, most, signal) {
  const filters = conditions(params);
  if (params.q && !params.deleted) {
    const began = performance.now();
    const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value));
    const reply = await api("memories.recall", { query: params.q, limit: FOUND, answering: true, min_relevance: 0, ...given }, { signal });
    const found = reply.results.filter((row) => row.type !== "session_turn" || row.source !== "transcript");
    const isShown = (row) => !isWeak(row) || row.id === params.open; // what is open stays, also if it fits less since it was edited
    const [rows, weak] = [found.filter(isShown), found.filter((row) => !isShown(row)).sort((a, b) => b.relevance - a.relevance)];
    const total = found.filter((row) => !isWeak(row)).length;
    if (params.open && !rows.some((row) => row.id === params.open)) {
      const kept = await api("memories.get", { id: params.open, include_deleted: true }, { signal }).catch(() => null);
      if (kept && !kept.is_deleted) rows.push({ ...kept, isKept: true });
    }
    return { rows, weak, total, ms: performance.now() - began, by: reply.method === "hybrid" ? "words and meaning" : "words" };
  }
  const reply = await api("memories.list", { ...filters, limit: most, deleted: params.deleted, words: wordsOf(params.q) }, { signal });
  return { rows: reply.memories, total: reply.total, all: reply.stats.total, isPart: reply.complete === false };
}

export function Memories({ route }) {
  const { params } = route;
  const [most, setMost] = useState(PAGE);
  const [showsWeak, setShowsWeak] = useState(false);
  const box = useRef(null);
  const [isStale, setStale] = useState(false);
  const [text, setText] = useState(params.q || ""); // not that of the address, which is a moment late
  const sent = useRef(text);
  const { open, ...asked } = params;
  const key = `${JSON.stringify(asked)} ${most}`;
  const load = useLoad(key, (signal) => read(params, most, signal), { delayMs: params.q ? TYPING_MS : 0 });
  const { rows, folded } = useMemo(() => {
    const { rows: good = [], weak = [] } = load.data || {};
    const shown = showsWeak ? weak : good.length ? [] : weak.slice(0, NEAREST);
    return { rows: [...good, ...shown], folded: weak.length - shown.length };
  }, [load.data, showsWeak]);

  // What is stored meanwhile is shown at once only to a reader who is at the top and has selected nothing.
  const later = useRef(0);
  const heard = useRef([]);
  useStream(`changes ${params.agent || ""}`, (tell, signal) => stream("changes.stream", {}, tell, signal), (event) => {
    clearTimeout(later.current);
    heard.current.push(event.id);
    later.current = setTimeout(() => {
      const isOwn = heard.current.every(changedHere);
      heard.current = [];
      if (scrollY < 40 && !lines.selected.size && !open) load.reload();
      else if (!isOwn) setStale(true);
    }, SETTLED_MS);
  });
  useEffect(() => setStale(false), [load.data]);

  useEffect(() => {
    const now = current().params.q || "";
    if (now !== sent.current) setText(now); // a link or the way back, not what is being typed
    sent.current = now;
  }, [params.q]);
  const search = (words) => {
    setText(words);
    sent.current = words;
    setParams({ q: words, open: "" }, { replace: true });
  };

  const forgotten = Boolean(params.deleted);
  const lines = useLines(rows, { open, reload: load.reload, forgotten });
  useEffect(() => {
    lines.clear();
    lines.setCursor(0);
    setMost(PAGE);
    setShowsWeak(false);
  }, [JSON.stringify(asked)]);
  useKeys({
    "/": ["search", () => box.current?.select()],
    ArrowDown: ["", () => lines.move(1)],
    ArrowUp: ["", () => lines.move(-1)],
    v: ["show or hide what probably does not answer", () => setShowsWeak(!showsWeak)],
    ...lines.keys,
    ...lines.changes,
  });

  return html`<div class=${`memories ${open ? "has-detail" : ""}`}>
    <section class="list" aria-label="Memories">
      <div class="search">
        <input id="search" ref=${box} type="search" placeholder=${forgotten ? "Words of a forgotten memory" : "Search memories"} aria-label="Search memories" autocomplete="off"
          spellcheck=${false} maxLength="2000" value=${text}
          onInput=${(event) => search(event.target.value)}
          onKeyDown=${(event) => event.key === "Enter" && (event.target.blur(), rows.length && lines.show(0))} />
        <p class="found" role="status">${found(load, params)}</p>
      </div>
      <${Filters} params=${params} at=${params.q ? 0 : load.at} />
      <${Reading} load=${load} what="memories" rows=${6} />
      ${isStale ? html`<button class="fresh" onClick=${load.reload}>Something was stored meanwhile. Show it</button>` : null}
      <ul class="lines">${rows.map((row, index) => lines.line(row, index, row.recoverable_until ? html`<span>recoverable until ${day(row.recoverable_until)}</span>` : row.isKept && html`<span>does not fit the search</span>`))}</ul>
      ${folded || showsWeak ? html`<button class="more" onClick=${() => setShowsWeak(!showsWeak)}>${showsWeak ? "Hide what probably does not answer" : `${folded} more that probably ${folded === 1 ? "does" : "do"} not answer: show`} <kbd>v</kbd></button>` : null}
      ${load.data && (!params.q || forgotten) && rows.length < load.data.total ? html`<button class="more" onClick=${() => setMost(most + PAGE)}>Show more of ${count(load.data.total, "memory", "memories")}</button>` : null}
      ${load.data && load.isCurrent && !rows.length ? html`<${Nothing} params=${params} all=${load.data.all} isPart=${load.data.isPart} done=${lines.done} />` : null}
    </section>
    ${open ? html`<${MemoryDetail} key=${open} id=${open} query=${forgotten ? "" : params.q} filters=${conditions(params)} onChange=${load.reload}
      onClose=${() => setParams({ open: "" })} />` : null}
    ${lines.bar}
  </div>`;
}

function found(load, params) {
  const { data } = load;
  if (!data) return "";
  if (params.deleted) return `${count(data.total, "forgotten memory", "forgotten memories")}${data.total ? ". Open one to recover it" : ""}${data.isPart ? ". Only the last 20,000 were searched" : ""}`;
  if (!params.q) return count(data.total, "memory", "memories");
  const best = data.total === FOUND ? " best" : "";
  return `${data.total}${best} found in ${Math.round(data.ms)} ms, by ${data.by}${!data.total && data.weak.length ? "; these are the nearest" : ""}`;
}

// Why the list is empty, and what to do about it.
function Nothing({ params, all, isPart, done }) {
  const [outside, setOutside] = useState(null);
  useEffect(() => {
    const { project, ...others } = params;
    if (project) read(others, 1, undefined).then((reply) => setOutside(reply.total), () => setOutside(null));
  }, []);
  const where = params.project ? ` in ${projectName(params.project)}` : "";
  const narrowed = params.type || params.tags || params.who || params.pinned || params.since;
  if (params.deleted) return html`<${Empty}><p>Nothing ${params.q ? "with these words " : ""}is forgotten${where}${isPart ? ", of the last 20,000" : ""}.</p></${Empty}>`;
  if (all === 0) {
    return html`<${Empty}><h2>Nothing is remembered yet</h2><p>Connect an agent, and it remembers while you work:</p><p><${Command} text="signet setup" /></p>
      <p>Take over what you told agents before:</p><p><${Command} text="signet backfill" /></p>
      <${Remember} text="" where="" project="" done=${done} /></${Empty}>`;
  }
  return html`<${Empty}><p>Nothing${params.q ? ` about “${cut(params.q, 60)}”` : ""}${where}${narrowed ? " with these filters" : ""}.</p>
    ${params.q ? html`<p>It may be forgotten. <button onClick=${() => setParams({ q: "", deleted: "1" })}>Show what is forgotten</button></p>` : null}
    ${outside ? html`<p>${count(outside, "is", "are")} outside of this project. <button onClick=${() => setParams({ project: "" })}>Show</button></p>` : null}
    ${narrowed ? html`<p><button onClick=${() => setParams({ type: "", tags: "", who: "", pinned: "", since: "" })}>Drop the filters</button></p>` : null}
    <${Remember} text=${params.q || ""} project=${params.project} done=${done} /></${Empty}>`;
}

function Remember({ text, project, done }) {
  const submit = (event) => {
    event.preventDefault();
    const content = event.target.elements.content.value.trim();
    if (content) remember(content, project ? { project } : {}, done);
  };
  return html`<form class="remember" onSubmit=${submit}><label>Remember it${project ? ` for ${projectName(project)}` : ""}
    <input name="content" value=${text} maxLength="10000" autocomplete="off" /></label><button>Remember</button></form>`;
}
