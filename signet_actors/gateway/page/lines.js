// The lines of a list of memories: the cursor, what is selected, and what can be done with it.
import { html, useState } from "./preact.js";
import { api } from "./api.js";
import { forget, move as moveTo, pin, recover, tag } from "./changes.js";
import { useLoad } from "./load.js";
import { MemoryLine, useFocus } from "./parts.js";
import { setParams } from "./route.js";
import { count } from "./words.js";

// `open`: the id of the line that is shown beside the list. Returns among others the keys of the list (`keys`), those that select
// and change its memories (`changes`), a function that draws a line, and the bar at the bottom.
export function useLines(rows, { open, reload, forgotten = false }) {
  const [cursor, setCursor] = useState(0);
  const [anchor, setAnchor] = useState(0);
  const [selected, setSelected] = useState(new Map());
  const [asking, setAsking] = useState("");
  const at = Math.min(cursor, Math.max(0, rows.length - 1));
  const chosen = () => (selected.size ? [...selected.values()] : rows[at] ? [rows[at]] : []);
  const clear = () => setSelected(new Map());
  const done = () => (clear(), reload());
  const select = (more) => setSelected(new Map([...selected, ...more.map((row) => [row.id, row])]));
  const toggle = (index, { range = false } = {}) => {
    const next = new Map(selected);
    const [from, until] = range ? [Math.min(anchor, index), Math.max(anchor, index)] : [index, index];
    const on = range || !next.has(rows[index]?.id);
    for (const row of rows.slice(from, until + 1)) on ? next.set(row.id, row) : next.delete(row.id);
    setSelected(next);
    setAnchor(index);
  };
  const show = (index, options) => {
    setCursor(index);
    if (rows[index]) setParams({ open: rows[index].id }, options);
  };
  const move = (by) => {
    const next = Math.max(0, Math.min(rows.length - 1, at + by));
    open ? show(next, { replace: true }) : setCursor(next);
  };
  const close = () => {
    if (document.activeElement.matches("input[type=search]")) document.activeElement.blur();
    else if (asking) setAsking("");
    else if (selected.size) clear();
    else if (open) setParams({ open: "" });
  };
  const keys = {
    j: ["next line", () => move(1)],
    k: ["line before", () => move(-1)],
    Enter: ["open the line", () => show(at)],
    Escape: ["close, or clear the selection", close],
  };
  const changes = {
    x: ["select the line", () => toggle(at)],
    X: ["select up to this line", () => toggle(at, { range: true })],
    p: ["pin or unpin", () => !forgotten && pin(chosen(), done)],
    t: ["add tags", () => !forgotten && chosen().length && setAsking("tags")],
    m: ["move to a project", () => !forgotten && chosen().length && setAsking("project")],
    f: ["forget", () => !forgotten && forget(chosen(), done)],
    r: ["recover", () => forgotten && recover(chosen(), done)],
  };
  const line = (row, index, extra) => html`<${MemoryLine} key=${row.id} row=${row} cursor=${index === at} selected=${selected.has(row.id)} extra=${extra}
    onOpen=${() => show(index)} onSelect=${(event) => toggle(index, { range: event.shiftKey })} />`;
  const bar = selected.size || asking ? html`<${Bulk} ...${{ rows: chosen(), asking, setAsking, forgotten, done, clear }} />` : null;
  return { at, selected, setCursor, select, move, show, clear, done, keys, changes, line, bar };
}

function Bulk({ rows, asking, setAsking, forgotten, done, clear }) {
  if (asking) return html`<${Asking} what=${asking} rows=${rows} close=${() => setAsking("")} done=${done} />`;
  return html`<div class="bulk" role="toolbar" aria-label="Selected memories"><span>${rows.length} selected</span>
    ${forgotten
      ? html`<button onClick=${() => recover(rows, done)}>Recover <kbd>r</kbd></button>`
      : html`<button onClick=${() => pin(rows, done)}>Pin <kbd>p</kbd></button>
        <button onClick=${() => setAsking("tags")}>Tag <kbd>t</kbd></button><button onClick=${() => setAsking("project")}>Move <kbd>m</kbd></button>
        <button onClick=${() => forget(rows, done)}>Forget <kbd>f</kbd></button>`}
    <button class="plain" onClick=${clear}>Clear</button></div>`;
}

// Asks for tags, or for the project, of the chosen memories.
function Asking({ what, rows, close, done }) {
  const isMove = what === "project";
  const projects = useLoad(what, (signal) => (isMove ? api("memories.facets", { top: 200 }, { signal }) : Promise.resolve(null)));
  const submit = (event) => {
    event.preventDefault();
    const text = event.target.elements[what].value.trim();
    close();
    if (isMove) moveTo(rows, text, done);
    else if (text) tag(rows, text.split(",").map((one) => one.trim()).filter(Boolean), done);
  };
  return html`<form class="bulk" onSubmit=${submit}><label>${isMove ? "Move" : "Add tags to"} ${count(rows.length, "memory", "memories")}${isMove ? " to the project" : ""}
    <input name=${what} placeholder=${isMove ? "none" : "ops, db"} autocomplete="off" list=${isMove ? "projects" : undefined} ref=${useFocus()} /></label>
    <datalist id="projects">${(projects.data?.projects.values || []).filter((one) => one.value).map((one) => html`<option value=${one.value}></option>`)}</datalist>
    <button>${isMove ? "Move" : "Add"}</button><button type="button" class="plain" onClick=${close}>Cancel</button></form>`;
}
