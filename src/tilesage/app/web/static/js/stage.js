// The board with its figures: one for all tabs, drawn from the position of the state.
import { Board, describe } from "./board.js";
import { now, on, state } from "./state.js";
import { $, ACTIONS, hint, number, store, toast } from "./util.js";

export const board = new Board($("board"));
let shown = null; // the position on the board
let spoken = 0;

export function setupStage() {
  on(["node", "tab"], draw);
  on(["tab"], () => {
    for (const element of document.querySelectorAll("[data-for]")) element.hidden = !element.dataset.for.split(" ").includes(state.tab);
  });
}

function draw(changed) {
  const game = now();
  const { node } = state;
  const empty = !game || !node;
  $("replay-empty").hidden = state.tab !== "replay" || !empty;
  if (state.tab === "learn") return;
  if (empty) { board.show(new Array(16).fill(0)); shown = null; over(null); return; }
  const view = game.view(node);
  if (board.element.dataset.palette !== game.game) {
    board.game = game.game;
    $("next").dataset.palette = game.game;
    shown = null;
  }
  const follows = shown && node.motions && (node.parent === shown || node.follows === shown);
  if (node !== shown) { if (follows && !node.still) board.move(view.cells, node.motions); else board.show(view.cells); }
  if (follows && state.tab === "play") gain(view.score - game.view(shown).score);
  figures(game, view);
  over(state.tab === "play" && view.over ? view : null);
  if (!node.still || performance.now() - spoken > 1000) table(view, node, follows, changed);
  shown = node;
}

function figures(game, view) {
  $("score").textContent = number(view.score);
  $("moves").textContent = number(view.moves);
  const best = Math.max(store.get(`best.${game.game}`, 0), game.kind !== "play" || game.board ? 0 : view.score);
  if (game.kind === "play") store.set(`best.${game.game}`, best);
  $("second-name").textContent = state.tab === "play" ? "Best" : "Largest";
  $("second").textContent = number(state.tab === "play" ? best : view.largest);
  hint($("next"), view.hint);
}

function gain(points) {
  if (points <= 0) return;
  const mark = $("gain");
  mark.textContent = `+${number(points)}`;
  mark.classList.remove("show");
  void mark.offsetWidth;
  mark.classList.add("show");
}

function over(view) {
  $("over").hidden = !view;
  if (view) $("over-text").textContent = `${number(view.score)} points in ${number(view.moves)} moves, largest tile ${number(view.largest)}.`;
}

// For those who do not see the board: a table of it in every tab, and a sentence when a person changed something.
function table(view, node, follows, changed) {
  spoken = performance.now();
  describe($("board-table"), view.cells);
  if (state.tab === "watch" || !changed.includes("node")) return;
  const move = follows && node.action !== null ? `${ACTIONS[node.action]}. ` : "";
  say(`${move}Score ${view.score}, largest tile ${view.largest}.${view.over ? " No move left." : ""}`);
}

let saying = 0;
export function say(text) {
  clearTimeout(saying);
  saying = setTimeout(() => { $("live").textContent = text; }, 150);
}

export function celebrate(before, after, goal) {
  if (after.largest > before.largest && after.largest >= goal) toast(`${number(after.largest)}! The game goes on.`);
}

// Swipes on the board: onSwipe(action).
export function swipes(onSwipe, onTap) {
  let origin = null;
  const element = board.element;
  element.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary) return;
    origin = [event.clientX, event.clientY];
    element.setPointerCapture?.(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (!origin || !event.isPrimary) return;
    const [dx, dy] = [event.clientX - origin[0], event.clientY - origin[1]];
    if (Math.max(Math.abs(dx), Math.abs(dy)) < 22) return;
    origin = null;
    onSwipe(Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? 1 : 3) : dy > 0 ? 2 : 0);
  });
  element.addEventListener("pointerup", (event) => {
    if (!origin) return;
    const { left, top, width, height } = element.getBoundingClientRect();
    onTap(Math.min(3, Math.floor(4 * (event.clientX - left) / width)) + 4 * Math.min(3, Math.floor(4 * (event.clientY - top) / height)));
    origin = null;
  });
  element.addEventListener("pointercancel", () => { origin = null; });
}
