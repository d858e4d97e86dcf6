// Today: is it working, and what did it do for me? The headline is a test: when was memory last asked, and was anything given.
import { html } from "./preact.js";
import { api } from "./api.js";
import { useLoad } from "./load.js";
import { Command, Findings, Headline, Project, Reading, Time } from "./parts.js";
import { to } from "./route.js";
import { count, cut, projectName } from "./words.js";

const EVERY_MS = 5_000;
const FEED = 14;
const PROJECTS = 8;

export function Today({ route }) {
  const { project, agent } = route.params;
  const load = useLoad(`today ${project || ""} ${agent || ""}`, (signal) => Promise.all([
    api("analytics.prompts", { project }, { signal }), api("searches.list", { project, limit: FEED, checks: false }, { signal }),
    api("reviews.list", { limit: 1 }, { signal }), api("pipeline.status", {}, { signal }), api("diagnostics.findings", {}, { signal }),
  ]), { everyMs: EVERY_MS });
  if (!load.data) return html`<${Reading} load=${load} what="today" rows=${6} />`;
  const [day, { searches }, reviews, pipeline, { verdict, findings }] = load.data;
  return html`<div class="today"><${Reading} load=${load} what="today" />
    <${Headline} verdict=${verdict} />
    <${Findings} findings=${findings}>${reviews.total ? html`<li class="is-warn"><a href=${to("review")}>${count(reviews.total, "proposal waits", "proposals wait")} for you</a></li>` : null}</${Findings}>
    ${verdict.level !== "none" || searches.length ? null : html`<ol class="first"><li>Connect a program: <${Command} text="signet setup" /></li><li>Remember something: <${Command} text='signet remember "The staging database listens on port 5433"' /></li>
      <li>Ask the program about it in a new session. This page shows what it was given.</li></ol>`}
    <div class="day"><${Day} day=${day} pipeline=${pipeline} /><${Feed} searches=${searches} /></div></div>`;
}

function Day({ day, pipeline }) {
  const { prompts, given, nothing, byHour } = day;
  const share = (number, of = prompts) => (of ? `${Math.round((100 * number) / of)} %` : "–");
  const most = Math.max(1, ...byHour);
  const cost = pipeline.usageToday.reduce((sum, one) => sum + one.costMicrousd, 0) / 1e6;
  return html`<section class="tile"><h3>Last 24 hours</h3>
    <p class="big">${prompts.toLocaleString("en")} <span class="meta">${prompts === 1 ? "prompt" : "prompts"}</span></p>
    <svg class="spark" viewBox="0 0 96 24" preserveAspectRatio="none" role="img" aria-label=${`Prompts by hour, at most ${most}`}>${byHour.map((number, hour) =>
      html`<rect key=${hour} x=${hour * 4} width="3" y=${24 - (22 * number) / most - 1} height=${(22 * number) / most + 1} />`)}</svg>
    <p class="axis found"><span>24 h ago</span><span>18 h</span><span>12 h</span><span>6 h</span><span>now</span></p>
    <dl class="facts"><dt>With memories</dt><dd>${share(given)}</dd><dt>Nothing fits, or nothing new</dt><dd>${share(nothing)}</dd><dt>Skipped</dt><dd>${share(prompts - given - nothing)}</dd>
      <dt>Sent to agents</dt><dd>${count(day.characters, "character")}, about ${count(day.tokens, "token")}</dd>
      <dt>Model calls</dt><dd>${count(pipeline.usageToday.reduce((sum, one) => sum + one.calls, 0), "call")}${cost ? `, $${cost.toFixed(2)}` : ""}</dd></dl>
    ${day.projects.length < 2 ? null : html`<h3>Prompts given nothing, by project</h3><dl class="facts by-project">${day.projects.slice(0, PROJECTS).map((one) => html`<dt>${one.project
      ? html`<a href=${to("sessions", { project: one.project })}>${projectName(one.project)}</a>` : "no project"}</dt><dd>${share(one.nothing, one.prompts)} of ${count(one.prompts, "prompt")}</dd>`)}</dl>`}</section>`;
}

function Feed({ searches }) {
  return html`<section class="tile"><h3>What was asked, and what memory gave</h3><ul class="feed">${searches.map((one) => html`<li key=${one.id}>
      <a href=${one.sessionKey ? to(["session", one.sessionKey, ...(one.number ? [one.number] : [])]) : to("memories", { q: one.prompt })}>${one.kind === "start" ? "A session started" : one.prompt ? cut(one.prompt, 110) : "A prompt that was erased"}</a>
      <span class="meta"><${Time} at=${one.at} />${one.harness ? html`<span>${cut(one.harness, 24)}</span>` : null}<${Project} project=${one.project} />
        <b class=${one.given ? "is-ok" : ""}>${one.outcome}</b></span></li>`)}</ul>
    ${searches.length ? null : html`<p class="meta">Nothing yet.</p>`}</section>`;
}
