// A game as a file or a link.
import { oops, $, copy, toast, LETTERS } from "./util.js";
import { now, on, state } from "./state.js";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LONGEST_LINK = 8000;

// Three moves a character.
export function pack(letters) {
  let packed = "";
  for (let i = 0; i < letters.length; i += 3) {
    const [a, b, c] = [0, 1, 2].map((k) => Math.max(0, LETTERS.indexOf(letters[i + k])));
    packed += ALPHABET[16 * a + 4 * b + c];
  }
  return `${letters.length}.${packed}`;
}

export function unpack(text) {
  const [count, packed] = text.split(".");
  let letters = "";
  for (const one of packed ?? "") {
    const bits = ALPHABET.indexOf(one);
    letters += LETTERS[(bits >> 4) & 3] + LETTERS[(bits >> 2) & 3] + LETTERS[bits & 3];
  }
  return letters.slice(0, Number(count) || 0);
}

// A link that needs nothing of this browser: the whole game where its chance comes from the seed, else the position.
export function linkTo(game) {
  const path = game.path();
  const seeded = !game.record && !path.some(({ byHand }) => byHand);
  const whole = { game: game.game, seed: game.seed, a: pack(game.letters()), at: game.at.ply };
  if (game.board) whole.board = game.board;
  const link = `${location.origin}/#replay?${new URLSearchParams(whole)}`;
  if (seeded && path.length > 1 && link.length <= LONGEST_LINK) return link;
  return `${location.origin}/#play?${new URLSearchParams({ game: game.game, board: game.view().text })}`;
}

export function setupFiles() {
  $("copy-link").addEventListener("click", () => { if (now()) copy(linkTo(now()), "Link copied."); });
  on(["node", "tab"], () => { for (const id of ["copy-link", "save-record", "save-gif", "save-png", "play-on"]) $(id).disabled = !state.node; });
  for (const kind of ["record", "gif", "png"]) $(`save-${kind}`).addEventListener("click", () => save(kind).catch(oops));
}

async function save(kind) {
  const game = now();
  if (!game) return;
  const nodes = kind === "png" ? [game.at] : game.path();
  if (kind !== "png" && nodes.length < 2) { toast("Make a move first."); return; }
  const button = $(`save-${kind}`);
  button.disabled = true;
  try {
    const body = { game: game.game, lines: nodes.map(({ line }) => line).join("\n"), actions: kind === "png" ? "" : game.letters(), kind, theme: document.documentElement.dataset.theme };
    const reply = await fetch("/api/save", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error((await reply.json()).error);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await reply.blob());
    link.download = `${game.game}-${game.view(nodes[nodes.length - 1]).score}.${kind === "record" ? "txt" : kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  } finally { button.disabled = false; }
}
