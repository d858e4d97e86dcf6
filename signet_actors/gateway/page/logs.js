// Logs: the newest lines, and new ones as they are written.
import { html, useEffect, useState } from "./preact.js";
import { api, stream } from "./api.js";
import { useKeys } from "./keys.js";
import { useStream } from "./live.js";
import { useLoad } from "./load.js";
import { Command, Empty, Reading } from "./parts.js";
import { setParams } from "./route.js";
import { cut, exact, visible } from "./words.js";

const SHOWN = 300;
const LEVELS = ["debug", "info", "warning", "error"];
const PROCESSES = ["supervisor", "gateway", "writer", "searcher", "retention", "extractor", "decider"];

export function Logs({ route }) {
  const { level = "", actor = "", text = "" } = route.params;
  const [following, setFollowing] = useState(true);
  const [fresh, setFresh] = useState([]);
  const asked = { level, actor, text };
  const key = JSON.stringify(asked);
  const load = useLoad(key, (signal) => api("logs.list", { ...asked, limit: SHOWN }, { signal }), { delayMs: text ? 200 : 0 });
  useEffect(() => setFresh([]), [load.data]);
  useStream(following ? `logs ${key}` : "", (heard, signal) => stream("logs.stream", asked, heard, signal), (line) =>
    line.type === "resync" ? load.reload() : setFresh((lines) => [line, ...lines].slice(0, SHOWN)));
  useKeys({ " ": ["follow or pause", () => setFollowing(!following)], "/": ["search the lines", () => document.getElementById("log-text").select()] });
  const lines = [...fresh, ...(load.data?.logs || [])].slice(0, SHOWN);
  const choice = (name, title, values, more = "") => html`<label>${title} <select value=${asked[name]} onChange=${(event) => setParams({ [name]: event.target.value })}>
    <option value="">all</option>${values.map((one) => html`<option value=${one}>${one}${more}</option>`)}</select></label>`;
  return html`<div class="logs">
    <div class="search"><input id="log-text" type="search" aria-label="Text in the lines" placeholder="Text in the lines" value=${text}
        onInput=${(event) => setParams({ text: event.target.value }, { replace: true })} />
      ${choice("level", "Level", LEVELS, " and above")}${choice("actor", "Process", PROCESSES)}
      <button aria-pressed=${following} onClick=${() => setFollowing(!following)}>${following ? "● Following" : "Paused"}</button></div>
    <${Reading} load=${load} what="the log" rows=${6} />
    <div class="log-lines">${lines.map((line) => html`<details key=${`${line.timestamp} ${line.message} ${JSON.stringify(line.data).slice(0, 80)}`} class=${`log-line level-${line.level === "warn" ? "warning" : line.level}`}>
      <summary><time dateTime=${line.timestamp} title=${exact(line.timestamp)}>${line.timestamp.slice(5, 23).replace("T", " ")}</time> <b>${cut(line.level, 8)}</b> <span>${cut(line.category, 16)}</span> ${cut(line.message, 300)}
        <span> ${cut(line.data.detail || line.data.route || line.data.child || "", 160)}</span></summary>
      <pre>${visible(JSON.stringify(line.data, null, 2)).slice(0, 20000)}</pre></details>`)}</div>
    ${load.data && !lines.length ? html`<${Empty}><p>No line matches.</p><p><${Command} text="signet logs" /></p></${Empty}>` : null}
    ${load.data?.complete === false ? html`<p class="meta">Older lines were not searched.</p>` : null}
  </div>`;
}
