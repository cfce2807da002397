// The games of this browser: the last ten of every kind and rule, each under a name of its own, so that no tab and no
// link can overwrite another's. A tab marks the game that it has open; whoever finds it marked goes on with a copy.
import { link } from "./socket.js";
import { Game } from "./game.js";
import { api, store, toast } from "./util.js";

const MOST = 10;
const PREFIX = "tilesage.game.";
const marked = new Set();

export const newId = () => Math.random().toString(36).slice(2, 10);

export function keptGames(kind, game = null) {
  const found = [];
  try {
    for (let i = 0; i < localStorage.length; i++) {
      const key = localStorage.key(i);
      if (!key.startsWith(PREFIX)) continue;
      const kept = store.get(key.slice(9));
      if (kept && kept.kind === kind && (!game || kept.game === game)) found.push(kept);
    }
  } catch { /* private window */ }
  return found.sort((a, b) => b.when - a.when);
}

export const keptGame = (id) => store.get(`game.${id}`);

export function keep(game) {
  if (!game || game.empty) return;
  const kept = game.kept();
  if (!store.set(`game.${game.id}`, kept)) {
    keptGames("replay").slice(1).forEach(({ id }) => forget(id));
    if (!store.set(`game.${game.id}`, kept)) toast("This browser has no room left: the game is not kept.", true);
  }
  for (const { id } of keptGames(game.kind, game.game).slice(MOST)) if (id !== game.id) forget(id);
}

function forget(id) {
  try { localStorage.removeItem(`${PREFIX}${id}`); } catch { /* private window */ }
}

// Open a kept game; where another tab has it open, a copy of it.
export async function bringBack(kept) {
  const taken = !marked.has(kept.id) && store.get(`open.${kept.id}`);
  const id = taken ? newId() : kept.id;
  const positions = await positionsOf(kept);
  return Game.of({ ...kept, id }, positions);
}

export async function positionsOf({ game, seed, board, actions, record }) {
  if (record) return (await api("/api/replay", { record })).positions;
  return (await link.ask("game.open", { game, seed, board, actions })).positions;
}

export function mark(game) {
  if (!game || marked.has(game.id)) return;
  marked.add(game.id);
  store.set(`open.${game.id}`, Date.now());
}

function unmark() {
  for (const id of marked) try { localStorage.removeItem(`tilesage.open.${id}`); } catch { /* private window */ }
}

window.addEventListener("pagehide", unmark);
window.addEventListener("pageshow", () => { for (const id of marked) store.set(`open.${id}`, Date.now()); });
