// The frame: screens by address, scope, keys that work everywhere, help.
import { html, render, useEffect, useState } from "./preact.js";
import { actAs, api, takeToken } from "./api.js";
import { Health } from "./health.js";
import { Jump } from "./jump.js";
import { knownKeys, useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { Logs } from "./logs.js";
import { MapScreen } from "./map.js";
import { Memories } from "./memories.js";
import { MemoryScreen } from "./memory.js";
import { Notice, copyLink, say } from "./notice.js";
import { SIGNS, useModal } from "./parts.js";
import { Review } from "./review.js";
import { current, go, setParams, to, useRoute } from "./route.js";
import { SessionScreen, Sessions } from "./sessions.js";
import { Settings } from "./settings.js";
import { apply, choose, setting, useSetting } from "./settings-store.js";
import { Today } from "./today.js";
import { cut, projectName } from "./words.js";

// In the order of the navigation; a screen without a title has no entry there, but is part of another one.
const SCREENS = [
  { name: "today", title: "Today", key: "t", view: Today },
  { name: "memories", title: "Memories", key: "m", view: Memories },
  { name: "memory", of: "memories", view: MemoryScreen },
  { name: "sessions", title: "Sessions", key: "s", view: Sessions },
  { name: "session", of: "sessions", view: SessionScreen },
  { name: "map", title: "Map", key: "p", view: MapScreen },
  { name: "review", title: "Review", key: "r", view: Review },
  { name: "health", title: "Health", key: "h", view: Health },
  { name: "logs", title: "Logs", key: "l", view: Logs },
  { name: "settings", title: "Settings", key: "e", view: Settings },
];
const STATE_MS = 15_000;

const named = (facet) => facet.values.map((one) => one.value).filter(Boolean).sort();

function Scope({ params }) {
  const load = useLoad(`facets ${params.agent || ""}`, async (signal) => {
    const reply = await api("memories.facets", { top: 200 }, { signal });
    return { projects: named(reply.projects), agents: named(reply.agents) };
  });
  const projects = [...new Set([...(load.data?.projects || []), params.project].filter(Boolean))];
  return html`<div class="scope">
    <label><span>Project</span><select value=${params.project || ""} onChange=${(event) => setParams({ project: event.target.value, open: "" })}>
      <option value="">all projects</option>
      ${projects.map((project) => html`<option value=${project}>${projectName(project)}</option>`)}</select></label>
    <label><span>Agent</span><input value=${params.agent || ""} placeholder="default" autocomplete="off" size="9" list="agents"
      onChange=${(event) => setParams({ agent: event.target.value.trim(), open: "" })} /></label>
    <datalist id="agents">${(load.data?.agents || []).map((agent) => html`<option value=${agent}></option>`)}</datalist>
  </div>`;
}

function State({ agent }) {
  const { data, error } = useLoad(`state ${agent || ""}`, (signal) => api("diagnostics.findings", {}, { signal }), { everyMs: STATE_MS });
  const failed = error && { level: "bad", word: !error.status ? "Not reachable" : error.status < 500 ? "Refused" : "Not ready", sentence: error.message };
  const { level, word, sentence } = failed || data?.verdict || { level: "none", word: "…" };
  return html`<span role="status"><a class=${`state is-${level}`} href=${to("health")} title=${cut(sentence, 200)}>${SIGNS[level]} ${cut(word, 30)}</a></span>`;
}

function Choice({ name, text, values }) {
  const value = useSetting(name);
  return html`<label>${text}<select value=${value} onChange=${(event) => choose(name, event.target.value)}>
    ${values.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>`;
}

function Help({ close }) {
  useKeys({ Escape: ["close", close] });
  return html`<dialog class="help" aria-labelledby="help" ref=${useModal()} onClose=${close}>
    <h2 id="help">Keys</h2>
    <dl>${knownKeys().map(([key, text]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}</dl>
    <h2>This browser</h2>
    <div class="choices">
      <${Choice} name="theme" text="Colours" values=${["auto", "light", "dark"]} />
      <${Choice} name="rows" text="Lines" values=${["wide", "dense"]} />
      <${Choice} name="times" text="Times" values=${["short", "exact"]} />
      <${Choice} name="keys" text="Single letters as keys" values=${["on", "off"]} />
    </div>
    <button onClick=${close}>Close</button></dialog>`;
}

// To the search of memories, from any screen: the box is there a moment after the address has changed.
function searchMemories() {
  go(to("memories"));
  const focus = (left) => {
    const box = document.getElementById("search");
    if (box) box.select();
    else if (left) requestAnimationFrame(() => focus(left - 1));
  };
  focus(60);
}

function App() {
  const route = useRoute();
  const [asked, setAsked] = useState("");
  actAs(route.params.agent);
  const screen = SCREENS.find((one) => one.name === route.screen);
  const titled = SCREENS.filter((one) => one.title);
  useEffect(() => {
    document.title = `${screen?.title || "Signet"} · Signet`;
  }, [screen]);
  useKeys({
    ...Object.fromEntries(titled.map((one) => [`g ${one.key}`, [`go to ${one.title}`, () => go(to(one.name))]])),
    "/": ["search", searchMemories],
    "Ctrl+K": ["jump to a screen or an id", () => setAsked("jump")],
    c: ["copy the link to what is shown", () => copyLink()],
    d: ["dense or wide lines", () => choose("rows", setting("rows") === "wide" ? "dense" : "wide")],
    "?": ["show the keys", () => setAsked("help")],
    Escape: ["", () => history.length > 1 && !screen?.title && history.back()],
  }, { frame: true });
  const View = screen?.view;
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>Skip to the content</a>
    <header class="top">
      <a class="brand" href=${to(titled[0].name)}>Signet</a>
      <nav aria-label="Screens">${titled.map((one) => html`<a href=${to(one.name)} aria-current=${one === screen ? "page" : one.name === screen?.of ? "true" : undefined}>${one.title}</a>`)}</nav>
      <button class="plain" onClick=${searchMemories}>Search <kbd>/</kbd></button>
      <${Scope} params=${route.params} />
      <${State} agent=${route.params.agent} />
      <button class="plain" aria-label="Keys and settings of this page" onClick=${() => setAsked("help")}>?</button>
    </header>
    <main id="main" tabIndex="-1">
      <h1 class="unseen">${screen?.title || "Signet"}</h1>
      ${View ? html`<${View} key=${`${route.screen} ${route.params.agent || ""}`} route=${route} />`
        : html`<div class="empty"><p>There is no screen “${cut(route.screen, 40)}”.</p><p><a href=${to(titled[0].name)}>${titled[0].title}</a></p></div>`}
    </main>
    ${asked === "help" ? html`<${Help} close=${() => setAsked("")} />` : null}
    ${asked === "jump" ? html`<${Jump} screens=${titled} close=${() => setAsked("")} />` : null}
    <${Notice} />`;
}

apply();
const { code } = current().params;
if (code) setParams({ code: "" }, { replace: true });
await takeToken(code).catch((error) => say(error.message, { bad: true }));
render(html`<${App} />`, document.getElementById("page"));
