// The conditions of the list of memories. They are part of the address.
import { html, useState } from "./preact.js";
import { setParams } from "./route.js";
import { cut } from "./words.js";

const TYPES = ["fact", "preference", "decision", "learning", "issue", "rule"];
const NAMES = ["type", "tags", "who", "pinned", "since", "deleted"];

export function Filters({ params }) {
  const [isOpen, setOpen] = useState(false);
  const set = (changes) => setParams({ ...changes, open: "" });
  const active = NAMES.filter((name) => params[name]);
  const more = ["tags", "who", "since"].filter((name) => params[name]);
  return html`<div class="filters" role="group" aria-label="Filters">
    ${TYPES.map((type) => html`<button class=${`chip type-${type}`} aria-pressed=${params.type === type}
      onClick=${() => set({ type: params.type === type ? "" : type })}>${type}</button>`)}
    <button class="chip" aria-pressed=${Boolean(params.pinned)} onClick=${() => set({ pinned: params.pinned ? "" : "1" })}>▲ pinned</button>
    <button class="chip" aria-pressed=${Boolean(params.deleted)}
      onClick=${() => set({ deleted: params.deleted ? "" : "1", q: "" })}>Forgotten</button>
    <button class="chip" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>More${more.length ? ` (${more.length})` : ""}</button>
    ${active.length ? html`<button class="plain" onClick=${() => set(Object.fromEntries(NAMES.map((name) => [name, ""])))}>Drop all</button>` : null}
    ${isOpen ? html`<form class="more-filters" onSubmit=${(event) => event.preventDefault()}>
      ${[["tags", "Tags, any of them", "ops, db"], ["who", "Said by", "user"], ["since", "Since", "2026-11-01"]].map(
        ([name, label, example]) => html`<label>${label}<input value=${params[name] || ""} placeholder=${example} autocomplete="off"
          onChange=${(event) => set({ [name]: event.target.value.trim() })} /></label>`)}
    </form>` : more.map((name) => html`<button class="chip" aria-pressed="true" onClick=${() => set({ [name]: "" })}
      aria-label=${`Drop the filter ${name}`}>${name}: ${cut(params[name], 30)} ×</button>`)}
  </div>`;
}
