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

function then({ search, earlier }, memory) {
  const kept = search.memories.find((one) => one.id === memory.id);
  const before = earlier.find((one) => one.memories.some(({ id, given }) => given && id === memory.id));
  const had = before && !kept?.given ? ` The session was given it ${before.kind === "start" ? "at its start" : `with “${cut(before.prompt || "an earlier prompt", 60)}”`}.` : "";
  if (kept) return `At that time it was ${inWords(kept)}.${had}`;
  if (memory.created_at > search.at) return "At that time it did not exist.";
  return `At that time it was not considered: the search of the prompt did not find it.${had}`;
}

function rehearse(search, text, before, fields) {
  return api("hooks.user_prompt_submit", {
    dryRun: true, asOf: search.id, sessionKey: search.sessionKey, harness: search.harness || "page", project: search.project || undefined, prompt: text,
    lastAssistantMessage: before, ...fields,
  });
}

// What the prompt would be given today, compared with what it was given.
export function Now({ search, text, before }) {
  const [rows, setRows] = useState(null);
  const run = () => attempt(async () => setRows((await rehearse(search, text, before, { explain: true })).considered || []));
  if (!rows) return html`<button class="plain" onClick=${run}>What would it be given today?</button>`;
  const was = new Set(search.memories.filter((memory) => memory.given).map((memory) => memory.id));
  const given = rows.filter((memory) => memory.given);
  const gone = search.memories.filter((memory) => memory.given && !given.some((one) => one.id === memory.id));
  return html`<div class="told" role="status"><p><b>Today it would be given ${given.length ? count(given.length, "memory", "memories") : "nothing"}${!gone.length && given.every((one) => was.has(one.id)) ? ", the same as then" : ""}.</b></p>
    <ul>${given.map((memory) => html`<li key=${memory.id}>${was.has(memory.id) ? "" : "+ "}${cut(memory.content || "", 160)} <${Relevance} value=${memory.relevance} /></li>`)}
      ${gone.map((memory) => html`<li key=${memory.id}>− ${memory.forgotten ? "a memory that is forgotten" : cut(memory.content || "", 160)}: ${rows.find((one) => one.id === memory.id)?.why || "it is not found any more"}</li>`)}</ul></div>`;
}

async function explained(asked, memory) {
  const { search, text, before } = asked;
  const reply = await rehearse(search, text, before, { explainId: memory.id });
  const kept = search.memories.find((one) => one.id === memory.id);
  return { memory, words: kept?.contentThen, then: then(asked, memory), explained: reply.explained };
}

function Told({ told, close }) {
  const { explained: now } = told;
  return html`<div class="told" role="status"><button type="button" class="plain" aria-label="Close" onClick=${close}>×</button><p><b>${cut(told.words || told.memory.content, 160)}</b>${told.words ? html` <span class="meta">as it was then</span>` : null}</p><p>${told.then}</p>
    ${now ? html`<p>Today it would be ${inWords(now)}${now.explanation ? ", because:" : "."} <${Relevance} value=${now.explanation?.relevance} /></p><${Because} explanation=${now.explanation} />` : null}</div>`;
}

// Why a memory was given, or left out, beside its line.
export function Why({ asked, memory }) {
  const [told, setTold] = useState(null);
  const run = () => attempt(async () => setTold(await explained(asked, memory)));
  return told ? html`<${Told} told=${told} close=${() => setTold(null)} />` : html`<button class="plain" onClick=${run}>Why was it ${memory.given ? "given" : "left out"}?</button>`;
}

export function WhyNot({ asked }) {
  const [found, setFound] = useState(null);
  const [told, setTold] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    const text = event.target.elements.memory.value.trim();
    setTold(null);
    if (text) attempt(async () => setFound(await candidates(text)));
  };
  const pick = (memory) => attempt(async () => {
    setTold(await explained(asked, memory));
    setFound(null);
  });
  return html`<form class="why-not" onSubmit=${submit}>
    <label>Why was another memory not given?
      <input name="memory" placeholder="words of the memory, then Enter" autocomplete="off" /></label>
    ${found ? html`<ul>${found.map((memory) => html`<li key=${memory.id}><button type="button" onClick=${() => pick(memory)}>${cut(memory.content, 120)}</button></li>`)}
      ${found.length ? null : html`<li class="meta">No memory has this.</li>`}</ul>` : null}
    ${told ? html`<${Told} told=${told} close=${() => setTold(null)} />` : null}
  </form>`;
}
