// "Why not…?": names a memory, and says what became of it at this prompt, then and today.
import { html, useState } from "./preact.js";
import { api } from "./api.js";
import { attempt } from "./notice.js";
import { Relevance } from "./parts.js";
import { because, cut, fate } from "./words.js";

const ID = /^[0-9a-f-]{6,36}$/i;

async function candidates(text) {
  if (ID.test(text)) return (await api("memories.find_by_prefix", { prefix: text.toLowerCase(), limit: 5 })).memories;
  const reply = await api("memories.recall", { query: text, limit: 5, answering: true, min_relevance: 0 });
  return reply.results;
}

function then(search, memory) {
  const kept = search.memories.find((one) => one.id === memory.id);
  if (kept) return kept.given ? "Then it was given." : `Then it was left out: ${kept.why}.`;
  if (memory.created_at > search.at) return "Then it did not exist.";
  return "Then it was not among the best that were considered.";
}

export function WhyNot({ search }) {
  const [found, setFound] = useState(null);
  const [told, setTold] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    const text = event.target.elements.memory.value.trim();
    setTold(null);
    if (text) attempt(async () => setFound(await candidates(text)));
  };
  const pick = (memory) => attempt(async () => {
    const reply = await api("memories.recall", { query: search.prompt, limit: 20, explainId: memory.id });
    setTold({ memory, then: then(search, memory), explained: reply.explained });
    setFound(null);
  });
  return html`<form class="why-not" onSubmit=${submit}>
    <input name="memory" aria-label="Why not…? Words or id of a memory" placeholder="Why not…? Words or id of a memory" autocomplete="off" />
    ${found ? html`<ul>${found.map((memory) => html`<li key=${memory.id}><button type="button" onClick=${() => pick(memory)}>${cut(memory.content, 120)}</button></li>`)}
      ${found.length ? null : html`<li class="meta">No memory has this.</li>`}</ul>` : null}
    ${told ? html`<div class="told" role="status"><p><b>${cut(told.memory.content, 160)}</b></p><p>${told.then}</p>
      ${told.explained ? html`<p>A search for the prompt alone today: ${told.explained.explanation ? html`<${Relevance} value=${told.explained.explanation.relevance} /> ` : ""}${fate(told.explained)}</p>
        ${told.explained.explanation ? html`<ul>${because(told.explained.explanation).map((line) => html`<li>${line}</li>`)}</ul>` : null}` : null}</div>` : null}
  </form>`;
}
