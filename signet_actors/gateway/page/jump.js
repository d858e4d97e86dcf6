// Ctrl+K: to a screen by its name, or to a memory by the first characters of its id.
import { html, useState } from "./preact.js";
import { api } from "./api.js";
import { useKeys } from "./keys.js";
import { useLoad } from "./load.js";
import { useModal } from "./parts.js";
import { go, to } from "./route.js";
import { cut, shortId } from "./words.js";

const ID = /^[0-9a-f-]{6,36}$/i;

export function Jump({ screens, close }) {
  const [text, setText] = useState("");
  useKeys({ Escape: ["close", close] });
  const wanted = text.trim().toLowerCase();
  const load = useLoad(wanted, async (signal) => {
    if (!ID.test(wanted)) return [];
    return (await api("memories.find_by_prefix", { prefix: wanted, limit: 6 }, { signal })).memories;
  }, { delayMs: 120 });
  const found = [
    ...screens.filter((one) => one.title.toLowerCase().startsWith(wanted)).map((one) => [to(one.name), one.title]),
    ...(load.isCurrent && load.data ? load.data.map((row) => [to(["memory", row.id]), `${cut(row.content, 60)} ${shortId(row.id)}`]) : []),
    ...(wanted && !ID.test(wanted) ? [[to("memories", { q: text.trim() }), `Search memories for “${cut(text.trim(), 60)}”`]] : []),
  ];
  const follow = (address) => {
    close();
    go(address);
  };
  const submit = (event) => {
    event.preventDefault();
    if (found.length) follow(found[0][0]);
  };
  return html`<dialog class="jump" aria-label="Jump" ref=${useModal()} onClose=${close}>
    <form onSubmit=${submit}><input autofocus aria-label="Screen, id or search" placeholder="Screen, id or search" value=${text} autocomplete="off"
      onInput=${(event) => setText(event.target.value)} /></form>
    <ul>${found.map(([address, title]) => html`<li key=${address}><a href=${address} onClick=${(event) => (event.preventDefault(), follow(address))}>${title}</a></li>`)}</ul>
  </dialog>`;
}
