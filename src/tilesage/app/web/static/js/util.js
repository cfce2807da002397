// Small things every tab uses: elements, numbers, storage, toasts, choices.
export const ACTIONS = ["up", "right", "down", "left"];
export const LETTERS = "URDL";
export const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
export const ARROWS = ["↑", "→", "↓", "←"];

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const plain = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
export const number = (value) => plain.format(Math.round(value));
export const compact = (value) => (Math.abs(value) < 10000 ? number(value) : short.format(value));
export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : share === 1 ? 0 : 1)} %`;

export function duration(ms) {
  if (ms < 1) return `${Math.max(1, Math.round(ms * 1000))} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}

export const store = {
  get(key, otherwise = null) {
    try {
      const text = localStorage.getItem(`tilesage.${key}`);
      return text === null ? otherwise : JSON.parse(text);
    } catch { return otherwise; }
  },
  set(key, value) {
    try { localStorage.setItem(`tilesage.${key}`, JSON.stringify(value)); return true; } catch { return false; /* full or private */ }
  },
};

export function toast(text, bad = false) {
  const box = $("toasts");
  for (const old of [...box.children]) if (old.textContent === text) old.remove();
  while (box.children.length > 2) box.firstChild.remove();
  const note = make("div", { class: bad ? "toast bad" : "toast", role: bad ? "alert" : "status" }, text);
  box.append(note);
  setTimeout(() => note.remove(), bad ? 6000 : 2600);
}

export const oops = (error) => toast(error.message || String(error), true);

export async function api(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let reply;
  try { reply = await fetch(path, options); } catch { throw new Error("The server does not answer. Is it still running?"); }
  const data = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Error(data.error || `The server answered ${reply.status}.`);
  return data;
}

export async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch { window.prompt("Copy this link:", text); }
}

// A radio group of buttons with roving focus.
export function segments(box, options, chosen, onChange) {
  box.replaceChildren(...options.map(([value, label]) => make("button", { type: "button", role: "radio", "data-value": value }, label)));
  const choose = (value, tell) => {
    for (const button of box.children) {
      const on = button.dataset.value === value;
      button.setAttribute("aria-checked", on);
      button.tabIndex = on ? 0 : -1;
    }
    if (tell) onChange(value);
  };
  box.onclick = (event) => {
    const button = event.target.closest("[role=radio]");
    if (button && button.getAttribute("aria-checked") !== "true") choose(button.dataset.value, true);
  };
  box.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const all = [...box.children];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    choose(next.dataset.value, true);
  };
  choose(chosen, false);
  return (value) => choose(value, false);
}

export function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, label]) => make("option", { value }, label)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

export const typing = (event) => event.ctrlKey || event.metaKey || event.altKey
  || (event.target.closest && event.target.closest("input:not([type=checkbox]):not([type=range]), textarea, select, dialog, [role=tab]"));

export const seedOf = (input) => {
  const text = input.value.trim();
  if (text && !/^\d{1,19}$/.test(text)) throw new Error("A seed is a whole number, such as 42.");
  return text || null;
};

export function hint(tiles, next) {
  tiles.parentElement.hidden = !next;
  if (!next) return;
  const key = next.join(" ");
  if (tiles.dataset.key === key) return;
  tiles.dataset.key = key;
  tiles.replaceChildren(...next.map((tile) => make("span", { class: "mini", "data-tile": tile }, String(tile))));
}

// Says what takes so long: first that the agent thinks, then that it is being compiled. Returns what ends it.
export function patience(note, thinking = "Thinking…") {
  const soon = setTimeout(() => { note.textContent = thinking; }, 200);
  const late = setTimeout(() => { note.textContent = "Preparing this agent: compiled on first use, then kept."; }, 2500);
  return () => { clearTimeout(soon); clearTimeout(late); };
}
