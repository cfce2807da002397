// The games on the table: opening, moving, going back and forth, trying another move. Play and Replay are the same
// game tree; they differ in what the arrow keys do.
import { deed, instead } from "./deeds.js";
import { Game, rulesOf } from "./game.js";
import { bringBack, keep, keptGame, keptGames, mark, newId, positionsOf } from "./kept.js";
import { link } from "./socket.js";
import { celebrate, say } from "./stage.js";
import { now, set, state, tell } from "./state.js";
import { store } from "./util.js";

let saving = 0;
const dirty = new Set();

export function touched(game) {
  dirty.add(game);
  clearTimeout(saving);
  saving = setTimeout(saveNow, 400);
}

export function saveNow() {
  for (const game of dirty) { mark(game); keep(game); }
  dirty.clear();
}
window.addEventListener("pagehide", saveNow);
document.addEventListener("visibilitychange", saveNow);

// Put a game on the table of its tab. The one before has been kept under its own name.
export function put(game) {
  saveNow();
  mark(game);
  store.set(`${game.kind}.game`, game.game);
  const mine = game.kind === state.tab;
  set(mine ? { [game.kind]: game, node: game.at } : { [game.kind]: game });
  tell("game");
}

export const openNew = (kind, fields) => instead(async () => {
  const { seed, positions } = await link.ask("game.open", fields);
  const game = new Game({ id: newId(), kind, board: null, ...fields, seed }, positions);
  put(game);
  if (fields.board) touched(game);
  return game;
});

export const openKept = (kept) => instead(async () => { const game = await bringBack(kept); put(game); return game; });

// A game from elsewhere: {game, seed, board, actions} or {record}; it goes to Replay.
export const openGame = (from, title, at = 0) => instead(async () => {
  const positions = await positionsOf(from);
  const game = new Game({ id: newId(), kind: "replay", title, ...from }, positions);
  game.recorded = positions.length;
  game.go(game.path()[Math.max(0, Math.min(at, positions.length - 1))]);
  put(game);
  touched(game);
  return game;
});

// The game of this kind that was on the table last, or a new one.
export async function resume(kind, game) {
  const kept = keptGames(kind, game)[0];
  if (kept) try { return await openKept(kept); } catch (error) { if (!link.open) throw error; }
  return openNew(kind, { game });
}

export function go(node) {
  const game = now();
  if (!game || !node) return;
  game.go(node);
  set({ node });
  touched(game);
}

export const back = () => deed(async () => go(now()?.at.parent));
export const forth = () => deed(async () => go(now()?.at.next));

export function jump(ply) {
  const path = now()?.path();
  if (path) go(path[Math.max(0, Math.min(path.length - 1, ply))]);
}

// Make a move from the position on the board; one that was made before leads to where it led then.
export const move = (action) => deed(async () => {
  const game = now();
  const from = game?.at;
  if (!from || !from.legal.includes(action)) return;
  const known = state.byHand ? null : game.known(from, action);
  const node = known ?? game.add(from, { ...(await link.ask("game.step", { game: game.game, line: from.line, action })), action });
  go(node);
  const { goal } = rulesOf(game.game);
  if (!known) celebrate(game.view(from), game.view(node), goal);
});

// Chance by hand: the tile that the last move brought lands on this cell; where it lies already, the next possible one.
export const place = (cell) => deed(async () => {
  const game = now();
  const { at } = game ?? {};
  if (!at?.parent) return say("Make a move first: then click the cell for the new tile.");
  const before = at.parent;
  const answer = await link.ask("game.place", { game: game.game, line: before.line, action: at.action, cell, now: at.line });
  const twin = before.children.find(({ line }) => line === answer.line);
  go(twin ?? game.add(before, { ...answer, action: at.action }, true));
});

export const keptOf = keptGame;
