// The conditions of the list of memories, each with how many it would leave. They are part of the address.
import { html, useState } from "./preact.js";
import { api } from "./api.js";
import { useLoad } from "./load.js";
import { TYPES } from "./parts.js";
import { setParams } from "./route.js";
import { cut, whoOf } from "./words.js";

const NAMES = ["type", "tags", "who", "pinned", "since", "deleted"];
const TAGS_SHOWN = 12;

// `at`: when the list was read; the numbers are read again then.
export function Filters({ params, at }) {
  const [isOpen, setOpen] = useState(false);
  const { project, who, since, deleted, agent, type, tags: tag, pinned, q } = params;
  const load = useLoad(JSON.stringify([project, who, since, deleted, agent, type, tag, pinned, at]), async (signal) => {
    const fields = { project, who, since, deleted, type, tags: tag, pinned: pinned ? true : undefined, top: 40, alternatives: true };
    const found = await api("memories.facets", fields, { signal });
    const of = (facet) => new Map(facet.values.map((one) => [one.value, one.count]));
    return { types: of(found.types), tags: of(found.tags), authors: of(found.who), pinned: found.pinned, forgotten: of(found.states).get("deleted") };
  });
  const { types, tags, authors } = load.data || { types: new Map(), tags: new Map(), authors: new Map() };
  const number = (value) => (value === undefined || q ? "" : html` <span class="number">${value}</span>`); // a search finds some of them
  const set = (changes) => setParams({ ...changes, open: "" });
  const active = NAMES.filter((name) => params[name]);
  const more = ["tags", "who", "since"].filter((name) => params[name]);
  const chip = (name, value, found, kind = "") => html`<button key=${`${name} ${value}`} class=${`chip ${kind}`} aria-pressed=${params[name] === value}
    onClick=${() => set({ [name]: params[name] === value ? "" : value })}>${cut(value, 30)}${number(found)}</button>`;
  const shown = [...new Set([...TYPES.filter((type) => !load.data || types.has(type)), ...[...types.keys()].filter(Boolean), params.type].filter(Boolean))].slice(0, 10);
  return html`<div class="filters" role="group" aria-label="Filters">
    ${shown.map((type) => chip("type", type, types.get(type), TYPES.includes(type) ? `type-${type}` : ""))}
    <button class="chip" aria-pressed=${Boolean(params.pinned)} onClick=${() => set({ pinned: params.pinned ? "" : "1" })}>▲ pinned${number(load.data?.pinned)}</button>
    <button class="chip" aria-pressed=${Boolean(deleted)} onClick=${() => set({ deleted: deleted ? "" : "1", q: "" })}>Forgotten${number(load.data?.forgotten)}</button>
    <button class="chip" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>More${more.length ? ` (${more.length})` : ""}</button>
    ${active.length ? html`<button class="plain" onClick=${() => set(Object.fromEntries(NAMES.map((name) => [name, ""])))}>Clear the filters</button>` : null}
    ${isOpen ? html`<div class="more-filters">
      <div role="group" aria-label="Tags">${[...tags].filter(([name]) => name).slice(0, TAGS_SHOWN).map(([name, found]) => chip("tags", name, found, "tag"))}</div>
      <label>Said by<select value=${who || ""} onChange=${(event) => set({ who: event.target.value })}><option value="">anybody</option>
        ${[...new Set([...authors.keys(), who])].filter(Boolean).map((name) => html`<option value=${name}>${cut(whoOf({ who: name }) || "nobody named", 40)} ${authors.get(name) ?? ""}</option>`)}</select></label>
      <label>Since<input type="date" value=${since || ""} onChange=${(event) => set({ since: event.target.value })} /></label>
    </div>` : more.map((name) => html`<button class="chip" aria-pressed="true" onClick=${() => set({ [name]: "" })}
      aria-label=${`Drop the filter ${name}`}>${name}: ${cut(params[name], 30)} ×</button>`)}
  </div>`;
}
