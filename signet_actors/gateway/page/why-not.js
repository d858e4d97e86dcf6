// "Why not…?": names a memory, and says what became of it at this prompt, then and today. Today is a dry run of the hook itself,
// with what the session had received before this prompt.
import { html, useState } from "./preact.js";
import { api } from "./api.js";
import { attempt } from "./notice.js";
import { Because, Relevance } from "./parts.js";
import { count, cut, isId } from "./words.js";

async function candidates(text) {
  if (isId(text)) return (await api("memories.find_by_prefix", { prefix: text.toLowerCase(), limit: 5 })).memories;
  const reply = await api("memories.recall", { query: text, limit: 5, answering: true, min_relevance: 0 });
  return reply.results.filter((one) => one.source !== "transcript");
}

const inWords = ({ given, outcome, why }) => `${given ? "given" : "left out"}${outcome === "given" ? "" : `: ${why}`}`;

export const where = ({ kind, number }) => (number ? `with prompt ${number}` : kind === "start" ? "at its start" : "by a search");

async function rehearse(search, fields) {
  const reply = await api("hooks.user_prompt_submit", { dryRun: true, asOf: search.id, sessionKey: search.sessionKey, ...fields });
  if (reply.skipped) throw new Error(`It was not run: ${cut(reply.reason, 60)}`);
  return reply;
}

// What the prompt would be given today, compared with what it was given.
export function Now({ search }) {
  const [rows, setRows] = useState(null);
  const run = () => attempt(async () => setRows((await rehearse(search, { explain: true })).considered || []));
  if (!rows) return html`<button class="plain" onClick=${run}>What would it be given today?</button>`;
  const was = new Set(search.memories.filter((memory) => memory.given).map((memory) => memory.id));
  const given = rows.filter((memory) => memory.given);
  const gone = search.memories.filter((memory) => memory.given && !given.some((one) => one.id === memory.id));
  const isSame = !gone.length && given.length === search.given && search.memories.every((memory) => !memory.given || !memory.changed);
  return html`<div class="told" role="status"><p><b>Today it would be given ${given.length ? count(given.length, "memory", "memories") : "nothing"}${isSame ? ", the same as then" : ""}.</b></p>
    <ul>${given.map((memory) => html`<li key=${memory.id}>${was.has(memory.id) ? "" : "+ "}${cut(memory.content || "", 160)} <${Relevance} value=${memory.relevance} /></li>`)}
      ${gone.map((memory) => html`<li key=${memory.id}>− ${memory.forgotten ? "a memory that is forgotten" : cut(memory.content || "", 160)}: ${rows.find((one) => one.id === memory.id)?.why || "it is not found any more"}</li>`)}</ul></div>`;
}

async function explained(search, memory) {
  const { explained: fate } = await rehearse(search, { explainId: memory.id });
  return { ...fate, content: memory.content, words: search.memories.find((one) => one.id === memory.id)?.contentThen };
}

function Told({ told, close }) {
  const { then, earlier, asThen, explanation } = told;
  return html`<div class="told" role="status"><button type="button" class="plain" aria-label="Close" onClick=${close}>×</button><p><b>${cut(told.words || told.content, 160)}</b>${told.words ? html` <span class="meta">as it was then</span>` : null}</p>
    <p>${then ? `At that time ${then}.` : ""}${earlier ? ` The session was given it ${where(earlier)}.` : ""}</p>
    <p>${asThen ? "The same as then" : `Today it would be ${inWords(told)}`}${explanation ? (told.given ? ", because: " : ". How it fits: ") : "."}
      <${Relevance} value=${explanation?.relevance} />${explanation && !asThen ? html` <span class="meta">as it is today</span>` : null}</p><${Because} explanation=${explanation} /></div>`;
}

// A button that is replaced by why a memory was given, or left out.
export function Why({ search, memory, label }) {
  const [told, setTold] = useState(null);
  const run = () => attempt(async () => setTold(await explained(search, memory)));
  return told ? html`<${Told} told=${told} close=${() => setTold(null)} />` : html`<button type="button" class="plain" onClick=${run}>${label}</button>`;
}

export function WhyNot({ search }) {
  const [found, setFound] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    const text = event.target.elements.memory.value.trim();
    if (text) attempt(async () => setFound(await candidates(text)));
  };
  return html`<form class="why-not" onSubmit=${submit}>
    <label>Why was another memory not given?
      <input name="memory" placeholder="words of the memory, then Enter" autocomplete="off" /></label>
    ${found ? html`<ul>${found.map((memory) => html`<li key=${memory.id}><${Why} search=${search} memory=${memory} label=${cut(memory.content, 120)} /></li>`)}
      ${found.length ? null : html`<li class="meta">No memory has this.</li>`}</ul>` : null}
  </form>`;
}
