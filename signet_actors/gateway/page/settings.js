// Settings: agent.yaml as text, checked while it is typed by the daemon's own rules, and shown as a comparison before it is stored.
import { html, useEffect, useState } from "./preact.js";
import { api } from "./api.js";
import { useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { attempt, offerUndo } from "./notice.js";
import { Command, Diff, Reading, Time } from "./parts.js";
import { count, cut } from "./words.js";

const FILE = "agent.yaml";
const PAUSE_MS = 400;
const seen = (element) => element?.scrollIntoView({ block: "nearest" });

export function Settings({ route: { params: { key } } }) {
  const [text, setText] = useState(null);
  const [isShown, setShown] = useState(false);
  const load = useLoad("settings", async (signal) => {
    const [{ files }, harnesses] = await Promise.all([api("config.read", {}, { signal }), api("harnesses.list", {}, { signal })]);
    return { stored: files.find((file) => file.name === FILE)?.content || "", harnesses: harnesses.harnesses };
  });
  const stored = load.data?.stored ?? "";
  useEffect(() => {
    if (load.data && text === null) setText(load.data.stored);
  }, [load.data]);
  const now = text ?? stored;
  const checked = useLoad(`check ${now}`, (signal) => (load.data ? api("config.check", { content: now }, { signal }) : null), { delayMs: PAUSE_MS });
  const reply = checked.data;
  const isChanged = now !== stored;
  const write = async (content, former) => {
    await api("config.write", { file: FILE, content, former });
    setShown(false);
    setText(content);
    await load.reload();
  };
  const store = () => attempt(async () => {
    await write(now, stored);
    offerUndo("Stored. It takes effect within two seconds.", () => write(stored, now));
  });
  const ask = () => isChanged && reply?.valid && checked.isCurrent && setShown(true);
  useKeys({ "Ctrl+Enter": ["compare, then store", () => (isShown ? store() : ask())], Escape: ["back to the text", () => setShown(false)] });
  if (!load.data) return html`<${Reading} load=${load} what="the settings" rows=${6} />`;
  return html`<div class="settings">
    <section><h2>${FILE}</h2>
      <${Reading} load=${checked.error ? checked : load} what="the check" />
      ${isShown ? html`<${Diff} before=${stored} after=${now} />${reply.needsRestart ? html`<p class="is-warn">◆ Some of it needs a restart: <${Command} text="signet restart" /></p>` : null}
        <div class="actions"><button class="primary" onClick=${store}>Store it <kbd>Ctrl+Enter</kbd></button><button class="plain" onClick=${() => setShown(false)}>Back <kbd>Esc</kbd></button></div>`
      : html`<textarea class="code" aria-label=${FILE} rows="24" spellcheck=${false} value=${now} onInput=${(event) => setText(event.target.value)}></textarea>
        <div class="checked" role="status">${!reply ? "" : reply.valid
          ? html`<p class="is-ok">● Valid${reply.warnings.length ? `, with ${count(reply.warnings.length, "warning")}` : ""}${isChanged ? ", not stored yet" : ""}.</p>`
          : html`<p class="is-bad">▲ ${count(reply.problems.length, "problem")}:</p>`}
          ${reply ? [...reply.problems, ...reply.warnings].map((line) => html`<p class=${reply.valid ? "is-warn" : "is-bad"}>${cut(line, 600)}</p>`) : null}</div>
        <div class="actions"><button class="primary" disabled=${!isChanged || !reply?.valid || !checked.isCurrent} onClick=${ask}>Compare and store <kbd>Ctrl+Enter</kbd></button>
          ${isChanged ? html`<button class="plain" onClick=${() => setText(stored)}>Drop the changes</button>` : null}</div>`}
    </section>
    <section><h2>Other than the defaults</h2>
      ${reply?.keys.length ? html`<dl class="set-keys">${reply.keys.map((one) => html`<div key=${one.key} class=${one.key === key ? "is-here" : ""} aria-current=${one.key === key} ref=${one.key === key ? seen : null}><dt><code>${one.key}</code></dt>
        <dd><code>${cut(JSON.stringify(one.value), 200)}</code> <span class="meta">default ${cut(JSON.stringify(one.default), 80)}; ${cut(one.values.replaceAll("`", ""), 160)}</span><p class="found">${cut(one.meaning.replaceAll("`", ""), 400)}</p></dd></div>`)}</dl>`
        : html`<p class="meta">${reply?.valid ? "Nothing, neither by this file nor by the environment of the daemon." : ""}</p>`}
      <h2>Agents' programs</h2>
      ${load.data.harnesses.length ? html`<ul>${load.data.harnesses.map((one) => html`<li key=${one.id}>${cut(one.name, 60)} <span class="meta">${one.lastSeen ? html`<span>last heard <${Time} at=${one.lastSeen} /></span>` : html`<span>not heard since the daemon started</span>`}</span></li>`)}</ul>`
        : html`<p class="meta">This command connects programs that are on this machine: <${Command} text="signet setup" /></p>`}
      <p class="meta">Models and where they run: <${Command} text="signet providers" /></p>
    </section>
  </div>`;
}
