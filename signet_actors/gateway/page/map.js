// Map: what memories are about, and which ones are near to each other. Every point is in a list beside it, too.
import { html, useEffect, useMemo, useState } from "./preact.js";
import { api } from "./api.js";
import { Drawing } from "./canvas.js";
import { MOST } from "./changes.js";
import { useKeys } from "./keys.js";
import { useLines } from "./lines.js";
import { useLoad } from "./load.js";
import { MemoryDetail } from "./memory.js";
import { say } from "./notice.js";
import { Command, Empty, MemoryLine, Reading, TYPES, Type, useFocus } from "./parts.js";
import { go, setParams, to } from "./route.js";
import { count, cut, projectName } from "./words.js";

const COMPUTING_MS = 1_500;
const LISTED = 200;
const NAMES = ["map", "names"];
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

const open = (point) => setParams({ open: point.id || point.of });
const close = () => setParams({ open: "" });

export function MapScreen({ route }) {
  const { parts, params } = route;
  const isNames = parts[0] === "names";
  const View = isNames ? Entities : Memories;
  const link = (isHere, address, title) => html`<a class="chip" href=${to(address)} aria-current=${isHere ? "page" : undefined}>${title}</a>`;
  useKeys({ v: ["the other map", () => go(to(isNames ? "map" : NAMES))] });
  return html`<nav class="filters" aria-label="Maps">${link(!isNames, "map", "Memories by meaning")}
      ${link(isNames, NAMES, "What memories are about")}</nav>
    <${View} key=${params.project || ""} params=${params} />`;
}

// The drawing, and beside it what is open, or a list of what is in view. `line(row, index, lines)` draws a line of it.
function View({ load, items, shown, scene, name, line, legend, detail, canChange }) {
  const [seen, setSeen] = useState(items);
  const [most, setMost] = useState(LISTED);
  const inView = seen.filter((one) => one.id);
  const rows = inView.slice(0, most);
  const lines = useLines(rows, { open: shown, reload: load.reload });
  const select = (chosen) => {
    if (chosen.length > MOST) say(`The first ${MOST} of ${chosen.length.toLocaleString("en")} are selected: more are not changed at once.`);
    lines.select(chosen.slice(0, MOST));
  };
  useKeys({ ...lines.keys, ...(canChange && { ...lines.changes, a: ["select all in view", () => select(inView)] }) });
  const marked = useMemo(() => new Set([...lines.selected.keys(), shown || ""]), [lines.selected, shown]);
  return html`<${Reading} load=${load} what="the map" /><div class=${`memories map ${shown ? "has-detail" : ""}`}>
    <section aria-label="Map"><${Drawing} name=${`A map of ${name}; the list has them all`} scene=${scene} marked=${marked} seen=${setSeen} picked=${open} lassoed=${canChange && select} />
      <ul class="meta legend" aria-label="Legend">${legend}<li class="pin">▲ pinned</li><li>○ around it: selected, or open</li></ul></section>
    ${shown ? detail : html`<section aria-label="In view"><p class="found" role="status">${inView.length.toLocaleString("en")} of ${name} in view</p>
      <ul class="lines small">${rows.map((row, index) => line(row, index, lines))}</ul>
      ${inView.length > most ? html`<button class="more" onClick=${() => setMost(most + LISTED)}>Show more</button>` : null}</section>`}
    ${lines.bar}</div>`;
}

function Memories({ params }) {
  const [isComputing, setComputing] = useState(false);
  const load = useLoad("points", (signal) => api("embeddings.projection", { project: params.project }, { signal }), { everyMs: isComputing ? COMPUTING_MS : 0 });
  const { data } = load;
  useEffect(() => setComputing(data?.status === "computing"), [data]);
  const scene = useMemo(() => ({
    lines: data?.edges || [],
    points: (data?.nodes || []).map((node) => ({ ...node, created_at: node.createdAt, size: node.pinned ? 3.5 : 2.5, title: cut(node.content, 160),
      colour: node.pinned ? "pin" : TYPES.includes(node.type) ? node.type : "muted" })),
  }), [data]);
  if (!scene.points.length) return html`<${Reading} load=${load} what="the map" />${data && html`<${NoMemories} data=${data} project=${params.project} />`}`;
  return html`<${View} load=${load} items=${scene.points} scene=${scene} shown=${params.open} name=${count(data.count, "memory", "memories")} canChange=${true}
    line=${(row, index, lines) => lines.line(row, index)}
    legend=${html`${TYPES.map((type) => html`<li><${Type} type=${type} /></li>`)}<li>● another type</li><li>— joins a memory with the nearest ones: what is near is alike${data.method === "umap" ? "" : ", roughly"}</li>`}
    detail=${html`<${MemoryDetail} key=${params.open} id=${params.open} onChange=${load.reload} onClose=${close} />`} />`;
}

function NoMemories({ data, project }) {
  if (data.status === "computing") return html`<${Empty}><p role="status">The map of ${count(data.total, "memory", "memories")} is being made, which takes some seconds.</p></${Empty}>`;
  return html`<${Empty}><h2>No memory${project ? ` of ${projectName(project)}` : ""} is on the map</h2><p>A memory is on it when the model for meanings has read it, a moment after it is stored.</p>
    ${project ? html`<p><button onClick=${() => setParams({ project: "" })}>Show all projects</button></p>` : null}<p><${Command} text="signet doctor" /></p></${Empty}>`;
}

// The entities, and after them what is known of each on a spiral around it.
function sceneOf({ entities, dependencies }) {
  const number = new Map(entities.map((one, at) => [one.id, at]));
  const lines = dependencies.map((one) => [number.get(one.sourceEntityId), number.get(one.targetEntityId)]);
  const apart = Math.min(4, 40 / Math.sqrt(entities.length));
  const facts = entities.map((one) => one.aspects.flatMap((aspect) => aspect.attributes));
  const points = entities.map((one, at) => ({ ...one, facts: facts[at].length, size: 3 + Math.min(5, Math.sqrt(one.mentions)),
    colour: one.pinned ? "pin" : "fact", title: cut(one.name, 160), label: cut(one.name, 28) }));
  entities.forEach(({ id, x, y }, at) => facts[at].forEach((fact, index) => {
    const away = apart * Math.sqrt(index + 5);
    lines.push([at, points.length]);
    points.push({ of: id, x: x + away * Math.cos(index * GOLDEN), y: y + away * Math.sin(index * GOLDEN), size: 1.5,
      colour: fact.kind === "constraint" ? "rule" : "muted", title: cut(fact.content, 160) });
  }));
  return { points, lines };
}

function Entities({ params }) {
  const load = useLoad("entities", (signal) => api("knowledge.constellation", { project: params.project, places: true }, { signal }));
  const { data } = load;
  const scene = useMemo(() => sceneOf(data || { entities: [], dependencies: [] }), [data]);
  if (!data) return html`<${Reading} load=${load} what="the map" />`;
  if (!data.entities.length) {
    return html`<${Empty}><h2>Nothing${params.project ? ` in ${projectName(params.project)}` : ""} is known by name yet</h2>
      ${params.project ? html`<p><button onClick=${() => setParams({ project: "" })}>Show all projects</button></p>` : null}<p>People, projects and tools appear here when a language model has found them in memories: <${Command} text="signet providers" /></p>
      <p>All memories are on the other map: <a href=${to("map")}>memories by meaning</a>.</p></${Empty}>`;
  }
  return html`<${View} load=${load} items=${scene.points} scene=${scene} shown=${params.open} name=${count(data.entities.length, "name")}
    line=${(row, index, lines) => html`<li key=${row.id} class=${`line ${index === lines.at ? "is-cursor" : ""}`}><a class="main" href=${to(NAMES, { open: row.id })}>
      <span class="words">${cut(row.name, 80)}</span><span class="meta"><span>${cut(row.entityType, 30)}</span><span>${count(row.mentions, "memory", "memories")}</span><span>${count(row.facts, "fact")}</span></span></a></li>`}
    legend=${html`<li class="type type-fact">name, larger if more memories mention it</li><li class="type">what is known of it</li><li class="type type-rule">a rule</li><li>— depends on, or is known of</li>`}
    detail=${html`<${Entity} key=${params.open} id=${params.open} project=${params.project} />`} />`;
}

// What is known of an entity, and its memories.
function Entity({ id, project }) {
  const heading = useFocus();
  const load = useLoad(id, (signal) => api("knowledge.expand", { entity: id, project: project || undefined, maxTokens: 10_000 }, { signal }));
  const { data } = load;
  const fact = (one) => html`<li><a href=${to(["memory", one.memoryId])}>${cut(one.content, 300)}</a></li>`;
  const connection = (one) => {
    const [name, type] = [html`<a href=${to(NAMES, { open: one.id })}>${cut(one.target, 80)}</a>`, cut(one.type.replace(/_/g, " "), 40)];
    return html`<li>${one.direction === "outgoing" ? html`${type} ${name}` : html`${name} ${type} it`}</li>`;
  };
  return html`<aside class="detail" aria-label="Name"><header><h2 ref=${heading} tabIndex="-1">${data ? cut(data.entity.name, 120) : "…"}</h2><button class="plain" aria-label="Close" onClick=${close}>×</button></header>
    <${Reading} load=${load} what="what is known" />
    ${data && html`${[{ name: "rules", attributes: data.constraints }, ...data.aspects].map(({ name, attributes }) => attributes.length ? html`<section><h3>${cut(name, 80)}</h3><ul>${attributes.map(fact)}</ul></section>` : null)}
      ${data.dependencies.length ? html`<section><h3>Connected with</h3><ul>${data.dependencies.map(connection)}</ul></section>` : null}
      <section><h3>${count(data.memoryCount, "memory", "memories")}</h3><ul class="lines small">${data.memories.map((row) => html`<${MemoryLine} key=${row.id} row=${{ ...row, created_at: row.createdAt }} />`)}</ul>
        <a href=${to("memories", { q: data.entity.name.slice(0, 200) })}>Search memories for it</a></section>`}</aside>`;
}
