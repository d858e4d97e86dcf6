// Review: one proposal at a time. A decision is held for some seconds, so that it can be taken back, and then sent.
import { html, useEffect, useRef, useState } from "./preact.js";
import { api } from "./api.js";
import { useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { attempt, offerUndo, say } from "./notice.js";
import { Command, Diff, Empty, Reading, Time, Type, useFocus } from "./parts.js";
import { to } from "./route.js";
import { count, cut, visible } from "./words.js";

const HELD_MS = 5_000;
const REASON = "decided on the page";
const EDITED = "edited when it was approved";

function send(decision, options) {
  const { item, approved, content } = decision;
  if (!approved) return api("reviews.reject", { id: item.id, reason: REASON }, options);
  return api("reviews.approve", { id: item.id, reason: content ? EDITED : REASON, content: content || undefined }, options);
}

// What was decided last and is not sent yet: for some seconds, until the next decision, or until the page or the screen is left.
function useDecisions(done) {
  const held = useRef(null);
  const settle = (options) => {
    const decision = held.current;
    held.current = null;
    if (decision) attempt(() => send(decision, options)).then(done);
  };
  useEffect(() => {
    const leave = () => settle({ keepalive: true });
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      leave();
    };
  }, []);
  return (decision, takenBack) => {
    settle();
    held.current = decision;
    setTimeout(() => held.current === decision && settle(), HELD_MS);
    offerUndo(decision.approved ? "Approved." : "Rejected.", async () => {
      if (held.current !== decision) throw new Error("It is decided already; a memory that came of it can be edited or forgotten.");
      held.current = null;
      takenBack();
      return "Not decided.";
    });
  };
}

export function Review() {
  const [decided, setDecided] = useState(new Set());
  const [at, setAt] = useState(0);
  const [editing, setEditing] = useState(false);
  const load = useLoad("reviews", (signal) => Promise.all([
    api("reviews.list", { limit: 200 }, { signal }), api("runs.list", { limit: 10 }, { signal }), api("pipeline.status", {}, { signal }).catch(() => ({})), // a token may not read it
  ]));
  const [{ items: pending, hint }, { runs }, { mode }] = load.data || [{ items: [] }, { runs: [] }, {}];
  const items = pending.filter((item) => !decided.has(item.id));
  const index = Math.min(at, Math.max(0, items.length - 1));
  const item = items[index];
  const hold = useDecisions(load.reload);
  const decide = (approved, content) => {
    if (!item) return;
    setDecided(new Set([...decided, item.id]));
    setEditing(false);
    hold({ item, approved, content }, () => setDecided((now) => new Set([...now].filter((id) => id !== item.id))));
  };
  useKeys({
    a: ["approve", () => decide(true)],
    r: ["reject", () => decide(false)],
    e: ["edit, then approve", () => item?.fact_content && setEditing(true)],
    s: ["skip", () => setAt(items.length ? (index + 1) % items.length : 0)],
    j: ["next proposal", () => setAt(Math.min(index + 1, items.length - 1))],
    k: ["proposal before", () => setAt(Math.max(0, index - 1))],
    Escape: ["leave the text as it was", () => setEditing(false)],
  });
  return html`<div class="review">
    <${Reading} load=${load} what="proposals" rows=${4} />
    ${item ? html`<${Proposal} key=${item.id} item=${item} place=${`${index + 1} of ${items.length}`} editing=${editing}
        approve=${(content) => decide(true, content)} reject=${() => decide(false)} edit=${() => setEditing(true)} skip=${() => setAt((index + 1) % items.length)} />`
      : load.data ? html`<${Empty}><h2>Nothing waits for you</h2><p>A language model can propose changes of memories. Those that need a person come here: for example what would replace a pinned memory, or contradicts one.</p>
        <p>${mode === "disabled" ? "No model is set up, so nothing is proposed:" : "These models make proposals:"} <${Command} text="signet providers" /></p></${Empty}>` : null}
    ${hint ? html`<p class="why">${hint.text} <${Command} text=${`signet config set ${hint.key} ${hint.value}`} /> <a href=${to("settings", { key: hint.key })}>Settings</a></p>` : null}
    ${runs.length ? html`<${Runs} runs=${runs} done=${load.reload} />` : null}
  </div>`;
}

const VERBS = { add: "Remember", update: "Change", delete: "Forget", merge: "Merge" };

function Proposal({ item, place, editing, approve, reject, edit, skip }) {
  const [text, setText] = useState(item.fact_content || "");
  return html`<article class="proposal" aria-label="Proposal">
    <header><h2>${VERBS[item.action] || cut(item.action, 30)} <${Type} type=${item.fact_type} /></h2><span class="meta">${place} · <${Time} at=${item.created_at} /></span></header>
    ${item.reason ? html`<p class="why">It needs you: ${cut(item.reason.replace(/_/g, " "), 300)}.${item.rationale ? ` The model says: ${cut(item.rationale, 600)}` : ""}</p>` : null}
    <div class="sides">
      <section><h3>Now</h3>${item.current_content === null ? html`<p class="meta">Nothing yet</p>` : html`<p class="text">${visible(item.current_content)}</p>`}</section>
      <section><h3>Proposed</h3>${editing
        ? html`<textarea aria-label="Text to approve" rows="5" ref=${useFocus()} value=${text} onInput=${(event) => setText(event.target.value)}
            onKeyDown=${(event) => event.key === "Enter" && event.ctrlKey && approve(text)}></textarea>`
        : item.action === "delete" ? html`<p class="meta">It is forgotten</p>`
        : item.current_content === null ? html`<p class="text"><ins>${visible(item.fact_content)}</ins></p>`
        : html`<${Diff} before=${item.current_content} after=${item.fact_content} />`}</section>
    </div>
    ${item.source_sentence ? html`<p>Its source says: <q>${visible(item.source_sentence)}</q></p>` : null}
    <p class="meta"><span>confidence ${Math.round(item.confidence * 100)} %</span>
      <a href=${to(["memory", item.source_memory_id])}>where it comes from</a>
      ${item.memory_id ? html`<a href=${to(["memory", item.memory_id])}>the memory that it is about</a>` : null}
      ${item.semantic_contradiction || item.syntactic_contradiction ? html`<span>it contradicts what is stored</span>` : null}</p>
    <div class="actions decide"><button class="primary" onClick=${() => approve(editing ? text : undefined)}>${editing ? "Approve this text" : "Approve"} <kbd>a</kbd></button>
      <button onClick=${reject}>Reject <kbd>r</kbd></button>
      ${item.fact_content && !editing ? html`<button onClick=${edit}>Edit <kbd>e</kbd></button>` : null}
      <button class="plain" onClick=${skip}>Skip <kbd>s</kbd></button></div>
  </article>`;
}

// What the pipeline did lately, each run with the way back. Undoing a run cannot be undone, so it is asked for twice.
function Runs({ runs, done }) {
  const [asked, setAsked] = useState("");
  const undo = (run) => attempt(async () => {
    const reply = await api("runs.undo", { run: run.id });
    const kept = reply.results.filter((one) => one.status === "kept").map((one) => cut(one.reason, 120));
    say(`Undone: ${count(reply.undone, "change")}.${kept.length ? ` Kept: ${kept.join("; ")}.` : ""}`);
    setAsked("");
    done();
  });
  return html`<section class="runs"><h2>What the pipeline did</h2><ul>${runs.map((run) => html`<li key=${run.id}>
    <span><${Time} at=${run.createdAt} /> · ${cut(run.model, 60)} · <a href=${to(["memory", run.memoryId])}>memory</a> · ${Object.entries(run.counts).map(([name, number]) => `${number} ${name.replace(/_/g, " ")}`).join(", ") || "nothing found"}</span>
    ${run.undoneAt ? html`<span class="meta">undone by ${cut(run.undoneBy, 40)}</span>`
      : asked === run.id ? html`<span class="actions"><button class="primary" onClick=${() => undo(run)}>Undo all of it</button><button class="plain" onClick=${() => setAsked("")}>Keep it</button></span>`
      : html`<button onClick=${() => setAsked(run.id)}>Undo run</button>`}</li>`)}</ul></section>`;
}
