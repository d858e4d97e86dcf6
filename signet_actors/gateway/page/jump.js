// Ctrl+K: to a screen by its name, or to a memory by the first characters of its id.
import { html, useState } from "./preact.js";
import { api } from "./api.js";
import { useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { useModal } from "./parts.js";
import { go, to } from "./route.js";
import { cut, isId } from "./words.js";

export function Jump({ screens, close }) {
  const [text, setText] = useState("");
  useKeys({ Escape: ["close", close] });
  const wanted = text.trim().toLowerCase();
  const load = useLoad(wanted, async (signal) => (isId(wanted) ? api("memories.find_by_prefix", { prefix: wanted, limit: 6 }, { signal }) : null), { delayMs: 120 });
  const found = [
    ...screens.filter((one) => one.title.toLowerCase().startsWith(wanted)).map((one) => [to(one.name), one.title]),
    ...(load.isCurrent && load.data ? load.data.memories.map((row) => [to(["memory", row.id]), cut(row.content, 80)]) : []),
    ...(wanted && !isId(wanted) ? [[to("memories", { q: text.trim() }), `Search memories for “${cut(text.trim(), 60)}”`]] : []),
  ];
  const follow = (event, [address] = []) => {
    event.preventDefault();
    if (!address) return;
    close();
    go(address);
  };
  return html`<dialog class="jump" aria-label="Jump" ref=${useModal()} onClose=${close}>
    <form class="search" onSubmit=${(event) => follow(event, found[0])}><input autofocus aria-label="Screen, id or search" placeholder="Screen, id or search" value=${text} autocomplete="off"
      onInput=${(event) => setText(event.target.value)} /></form>
    <ul>${found.map((one) => html`<li key=${one[0]}><a href=${one[0]} onClick=${(event) => follow(event, one)}>${one[1]}</a></li>`)}</ul>
  </dialog>`;
}
