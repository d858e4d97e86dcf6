// Health: what is broken as sentences with one button, then what runs and what it costs.
import { html, useState } from "./preact.js";
import { api } from "./api.js";
import { useLoad } from "./load.js";
import { attempt, say } from "./notice.js";
import { Command, Findings, Headline, Reading, Time } from "./parts.js";
import { count, cut, day, sentence, size, span } from "./words.js";

const STATE_MS = 5_000;
const PLAN_MS = 30_000;

// The button of each repair, and its request.
const REPAIRS = {
  "release-leases": ["Release the jobs", () => api("repair.release_leases")],
  "requeue-dead": ["Try the jobs again", () => api("repair.requeue_dead")],
  "check-fts": ["Rebuild the index", () => api("repair.check_text", { repair: true })],
  "retention-sweep": ["Sweep now", () => api("repair.sweep")],
  "re-embed": ["Embed them", () => api("repair.reembed")],
  "clean-orphans": ["Delete the vectors", () => api("repair.clean_orphans")],
};

export function Health() {
  const state = useLoad("state", (signal) => Promise.all([
    api("status.get", {}, { signal }), api("pipeline.status", {}, { signal }), api("diagnostics.findings", {}, { signal }),
  ]), { everyMs: STATE_MS });
  const plan = useLoad("plan", (signal) => Promise.all([
    api("repair.plan", {}, { signal }), api("backup.list", {}, { signal }), api("analytics.latency", { minutes: 60 }, { signal }),
    api("analytics.prompts", { hours: 1 }, { signal }), api("analytics.usage", {}, { signal }),
  ]), { everyMs: PLAN_MS });
  if (!state.data) return html`<${Reading} load=${state} what="the state of the daemon" rows=${6} />`;
  const [status, pipeline, { verdict, findings }] = state.data;
  const [{ repairs }, backups, latency, prompts, usage] = plan.data || [{ repairs: [] }];
  const again = () => Promise.all([plan.reload(), state.reload()]);
  const told = (repair) => findings.filter(({ command }) => command === `signet repair ${repair.name}`).map(({ text }) => text);
  const others = findings.filter(({ text }) => !repairs.some((repair) => told(repair).includes(text)));
  const left = others.length + repairs.length;
  return html`<div class="health">
    <${Reading} load=${state} what="the state of the daemon" />
    <${Headline} verdict=${verdict}>${left ? `${count(left, "thing")} to look at.` : "Nothing to do."}</${Headline}>
    <${Findings} findings=${others}>${repairs.map((repair) => html`<${Repair} key=${repair.name} repair=${repair} reason=${told(repair).join(" ") || repair.reason} again=${again} />`)}</${Findings}>
    <${Reading} load=${plan} what="the repairs" />
    <div class="tiles"><${Processes} status=${status} /><${Queues} pipeline=${pipeline} />
      ${plan.data ? html`<${Cost} days=${usage.days} /><${Latency} latency=${latency} prompts=${prompts} /><${Backups} backups=${backups} again=${again} />` : null}</div>
  </div>`;
}

function Repair({ repair, reason, again }) {
  const [running, setRunning] = useState(false);
  const [title, work] = REPAIRS[repair.name] || [];
  const run = async () => {
    setRunning(true);
    await attempt(async () => {
      const before = await api("diagnostics.get");
      const reply = await work();
      const after = await api("diagnostics.get");
      say(`${sentence(reply.message)} Health ${before.composite.score.toFixed(2)} → ${after.composite.score.toFixed(2)}.`);
      await again();
    });
    setRunning(false);
  };
  return html`<li class="is-warn"><p>${sentence(reason)}</p>
    <span class="actions">${work ? html`<button disabled=${running} onClick=${run}>${running ? "Running …" : title}</button>` : null}
      <${Command} text=${`signet repair ${repair.name}`} /></span></li>`;
}

// Each row: whether something is wrong with it, then its cells. `none` is said if there is no row.
function Tile({ title, head, rows = [], none, children }) {
  return html`<section class="tile"><h3>${title}</h3>${rows.length ? html`<table><thead><tr>${head.map((text) => html`<th>${text}</th>`)}</tr></thead>
    <tbody>${rows.map(([isBad, ...cells]) => html`<tr class=${isBad ? "is-bad" : ""}>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table>`
    : none && html`<p class="meta">${none}</p>`}${children}</section>`;
}

function Processes({ status }) {
  const rows = status.actors.map((one) => [one.state !== "up", cut(one.name, 24), cut(one.state, 16), one.restarts, one.counters.rss_bytes ? size(one.counters.rss_bytes) : ""]);
  return html`<${Tile} title=${`Processes, up for ${span(status.uptime)}`} head=${["process", "state", "restarts", "RAM"]} rows=${rows}>
    <p class="meta"><span>${count(status.db?.memories ?? 0, "memory", "memories")}</span><span>${size(status.db?.bytes ?? 0)} on disk</span><span>version ${cut(status.version, 20)}</span></p></${Tile}>`;
}

function Queues({ pipeline }) {
  const busy = pipeline.jobs.filter((job) => job.pending + job.delayed + job.leased + job.dead);
  const rows = busy.map((job) => [job.dead, job.kind.replace(/_/g, " "), job.pending + job.delayed, job.leased, job.dead, job.oldestPendingAgeSec ? span(job.oldestPendingAgeSec) : ""]);
  return html`<${Tile} title="Work that waits" head=${["kind", "waits", "runs", "failed", "oldest"]} rows=${rows} none=${pipeline.mode === "disabled" ? "Nothing. No model is set up to find facts: what is said is kept word for word." : "Nothing."} />`;
}

function Cost({ days }) {
  const rows = days.map((one) => [false, day(`${one.day}T12:00`), cut(one.model || one.provider, 40), one.calls, (one.tokensIn + one.tokensOut).toLocaleString("en"), one.costMicrousd ? `$${(one.costMicrousd / 1e6).toFixed(2)}` : ""]);
  return html`<${Tile} title="Model calls of the last seven days" head=${["day", "model", "calls", "tokens", "cost"]} rows=${rows} none="None." />`;
}

const REQUESTS = [["remember", "remember"], ["recall", "recall"], ["mutate", "change"]];

function Latency({ latency, prompts }) {
  const inHour = (name) => latency.minutes.reduce((sum, minute) => sum + minute[name].count, 0);
  const all = [["prompt", prompts.ms, prompts.prompts], ...REQUESTS.map(([name, title]) => [title, latency[name], inHour(name)]), ["job", latency.jobs, ""]];
  const rows = all.filter(([, took]) => took.count).map(([title, took, times]) => [false, title, ...["p50", "p95", "p99"].map((part) => took[part].toFixed(1)), times]);
  return html`<${Tile} title="How long it takes, in ms, and how often" head=${["", "half\u00a0≤", "95\u00a0%\u00a0≤", "99\u00a0%\u00a0≤", "last hour"]} rows=${rows} none="Nothing was asked yet." />`;
}

function Backups({ backups, again }) {
  const start = () => attempt(() => api("backup.start").then(() => (say("A backup is being made."), again())));
  const last = backups.backups[0];
  return html`<${Tile} title="Backups"><p class="meta">${last ? html`<span>${count(backups.backups.length, "backup")}, the last one <${Time} at=${last.madeAt} /></span>` : html`<span>None yet.</span>`}
    <span>${cut(backups.directory, 120)}</span></p>
    <p class="actions"><button disabled=${Boolean(backups.running)} onClick=${start}>${backups.running ? "Running …" : "Back up now"}</button><${Command} text="signet backup" /></p></${Tile}>`;
}
