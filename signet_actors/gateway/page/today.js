// Today: is it working, and what did it do for me? The headline is a test: when was memory last asked, and was anything given.
import { html } from "./preact.js";
import { api } from "./api.js";
import { useLoad } from "./load.js";
import { Command, Project, Reading, Time } from "./parts.js";
import { to } from "./route.js";
import { SILENT_MS, count, cut, span, verdict } from "./words.js";

const EVERY_MS = 5_000;
const DAY_MS = 86_400_000;
const FEED = 14;
const MOST_PAGES = 5;
const WHOLE_MS = 300_000;
const TOKEN_CHARS = 4;

let day = { key: "", wholeAt: 0, rows: [], isCut: false };

// Returns the day's searches, with those memories alone that the session had. Of what was read within WHOLE_MS only newer ones are asked for.
async function readDay(key, project, signal) {
  const from = new Date(Date.now() - DAY_MS).toISOString();
  const isKnown = day.key === key && day.rows.length > 0 && Date.now() - day.wholeAt < WHOLE_MS;
  const since = isKnown ? day.rows[0].at : from;
  const rows = new Map();
  let before;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const reply = await api("searches.list", { project, since, before, limit: 200 }, { signal });
    for (const row of reply.searches) rows.set(row.id, { ...row, memories: row.memories.filter((one) => one.outcome === "received") });
    before = reply.next || undefined;
    if (!before) break;
  }
  if (isKnown) for (const row of day.rows) if (row.at >= from && !rows.has(row.id)) rows.set(row.id, row);
  day = { key, wholeAt: isKnown ? day.wholeAt : Date.now(), rows: [...rows.values()], isCut: Boolean(before) || (isKnown && day.isCut) };
  return day;
}

async function read(key, project, signal) {
  const [{ rows, isCut }, last, harnesses, reviews, pipeline, health] = await Promise.all([
    readDay(key, project, signal), api("searches.list", { kind: "prompt", limit: 1 }, { signal }), api("harnesses.list", {}, { signal }),
    api("reviews.list", { limit: 1 }, { signal }), api("pipeline.status", {}, { signal }), api("health.get", {}, { signal }),
  ]);
  return { searches: rows, isCut, last: last.searches[0], harnesses: harnesses.harnesses, reviews: reviews.total, pipeline, health };
}

export function Today({ route }) {
  const { project, agent } = route.params;
  const key = `today ${project || ""} ${agent || ""}`;
  const load = useLoad(key, (signal) => read(key, project, signal), { everyMs: EVERY_MS });
  const { data } = load;
  if (!data) return html`<${Reading} load=${load} what="today" rows=${6} />`;
  const [sign, word, sentence] = verdict(data.health, data.last, data.searches.find((one) => one.kind === "prompt" && one.given));
  return html`<div class="today"><${Reading} load=${load} what="today" />
    <h2 class="headline"><span class=${sign}>${word}</span> <small>${sentence}</small></h2>
    <${Needs} data=${data} />
    ${data.last || data.searches.length ? null : html`<ol class="first"><li>Connect a program: <${Command} text="signet setup" /></li><li>Remember something: <${Command} text='signet remember "The staging database listens on port 5433"' /></li>
      <li>Ask the program about it in a new session. This page shows what it was given.</li></ol>`}
    <div class="day"><${Day} searches=${data.searches} isCut=${data.isCut} pipeline=${data.pipeline} /><${Feed} searches=${data.searches} /></div></div>`;
}

function Needs({ data }) {
  const dead = data.pipeline.dead.reduce((sum, one) => sum + one.count, 0);
  const silent = data.harnesses.filter((one) => one.lastSeen && Date.now() - Date.parse(one.lastSeen) > SILENT_MS);
  const unheard = data.last ? data.harnesses.filter((one) => !one.lastSeen) : [];
  if (!data.reviews && !dead && !silent.length && !unheard.length) return null;
  return html`<ul class="needs" aria-label="Needs you">
    ${data.reviews ? html`<li><a href=${to("review")}>${count(data.reviews, "proposal waits", "proposals wait")} for you</a></li>` : null}
    ${dead ? html`<li><a href=${to("health")}>${count(dead, "job")} failed for good</a></li>` : null}
    ${[...silent, ...unheard].map((one) => html`<li key=${one.id}>${cut(one.name, 30)} ${one.lastSeen ? html`was not heard for ${span((Date.now() - Date.parse(one.lastSeen)) / 1000)}` : "was not heard since the daemon started"}: <${Command} text=${`signet connect ${one.id} --check`} /></li>`)}</ul>`;
}

function Day({ searches, isCut, pipeline }) {
  const prompts = searches.filter((one) => one.kind === "prompt");
  const skipped = prompts.filter((one) => one.skipped).length;
  const given = prompts.filter((one) => one.given && !one.skipped).length;
  const share = (number) => (prompts.length ? `${Math.round((100 * number) / prompts.length)} %` : "–");
  const hours = Array.from({ length: 24 }, () => 0);
  for (const one of prompts) hours[Math.min(23, Math.floor((Date.now() - Date.parse(one.at)) / 3_600_000))] += 1;
  const most = Math.max(1, ...hours);
  const characters = searches.reduce((sum, one) => sum + one.characters, 0);
  const cost = pipeline.usageToday.reduce((sum, one) => sum + one.costMicrousd, 0) / 1e6;
  return html`<section class="tile"><h3>Last 24 hours</h3>
    <p class="big">${prompts.length}${isCut ? "+" : ""} <span class="meta">${prompts.length === 1 ? "prompt" : "prompts"}</span></p>
    <svg class="spark" viewBox="0 0 96 24" preserveAspectRatio="none" role="img" aria-label=${`Prompts by hour, at most ${most}`}>${hours.map((number, hour) =>
      html`<rect key=${hour} x=${(23 - hour) * 4} width="3" y=${24 - (22 * number) / most - 1} height=${(22 * number) / most + 1} />`)}</svg>
    <dl class="facts"><dt>Given memories</dt><dd>${share(given)}</dd><dt>Nothing fits, or nothing new</dt><dd>${share(prompts.length - given - skipped)}</dd><dt>Skipped</dt><dd>${share(skipped)}</dd>
      <dt>Given in all</dt><dd>${count(characters, "character")}, about ${count(Math.round(characters / TOKEN_CHARS), "token")}</dd>
      <dt>Model calls</dt><dd>${count(pipeline.usageToday.reduce((sum, one) => sum + one.calls, 0), "call")}${cost ? `, $${cost.toFixed(2)}` : ""}</dd></dl></section>`;
}

function Feed({ searches }) {
  return html`<section class="tile"><h3>What was asked, and what memory gave</h3><ul class="feed">${searches.slice(0, FEED).map((one) => html`<li key=${one.id}>
      <a href=${one.sessionKey ? to(["session", one.sessionKey, ...(one.number ? [one.number] : [])]) : to("memories", { q: one.prompt })}>${one.kind === "start" ? "A session started" : one.prompt ? cut(one.prompt, 110) : "A prompt that was erased"}</a>
      <span class="meta"><${Time} at=${one.at} />${one.harness ? html`<span>${cut(one.harness, 24)}</span>` : null}<${Project} project=${one.project} />
        <b class=${one.given ? "is-ok" : ""}>${one.outcome}</b></span></li>`)}</ul>
    ${searches.length ? null : html`<p class="meta">Nothing in the last 24 hours.</p>`}</section>`;
}
