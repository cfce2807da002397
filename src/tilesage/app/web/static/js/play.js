// The Play tab. The server holds the game and knows the rules; the page keeps the seed and the actions, which are the
// whole game, so that a reload or a restarted server brings it back.
import { Bars } from "./bars.js";
import { Board, describe } from "./board.js";
import { openEditor } from "./editor.js";
import { link } from "./socket.js";
import { $, ACTIONS, ARROWS, LETTERS, copy, duration, hint, number, oops, patience, seedOf, segments, store, toast, typing } from "./util.js";

const KEYS = {
  ArrowUp: 0, ArrowRight: 1, ArrowDown: 2, ArrowLeft: 3, w: 0, d: 1, s: 2, a: 3, k: 0, l: 1, j: 2, h: 3,
};
const SWIPE = 22; // pixels
const board = new Board($("play-board"));
const bars = new Bars($("play-bars"));
let lab = null; // games, agents and models of this server
let current = null; // the position
let actions = "";
let previous = null; // the game that a new one took the place of: undo brings it back
let queue = [];
let busy = false;
let asked = 0;
let waited = () => {};
let chooseGame = () => {};

export function setupPlay(laboratory, share) {
  lab = laboratory;
  const wanted = share ?? { game: store.get("play.game", lab.games[0].name) };
  if (!lab.games.some(({ name }) => name === wanted.game)) wanted.game = lab.games[0].name;
  chooseGame = segments($("play-games"), lab.games.map(({ name, title }) => [name, title]), wanted.game, (name) => resume(name));
  $("play-auto").checked = store.get("play.auto", false);
  bind();
  let first = true;
  link.whenOpen(() => {
    if (first && share?.board) start({ game: share.game, board: share.board }).catch(oops);
    else resume(current?.game ?? wanted.game);
    first = false;
  });
}

export const openPosition = (game, text) => start({ game, board: text });

function bind() {
  document.addEventListener("keydown", onKey);
  swipes($("play-board"));
  const press = (id, act) => $(id).addEventListener("click", act);
  press("play-undo", undo);
  press("play-undo-over", undo);
  press("play-restart", () => fresh());
  press("play-again", () => fresh());
  press("play-ask", ask);
  press("play-review", review);
  press("play-to-replay", review);
  press("play-share", () => copy(linkTo(current), "Link to this position copied."));
  press("play-edit", () => openEditor(lab, current, (text) => start({ game: current.game, board: text })));
  $("play-seed-form").addEventListener("submit", (event) => {
    event.preventDefault();
    try { start({ game: current.game, seed: seedOf($("play-seed")) }).then(() => $("play-board").focus(), oops); } catch (error) { oops(error); }
  });
  $("play-auto").addEventListener("change", ({ target }) => { store.set("play.auto", target.checked); if (target.checked) ask(); });
  for (const id of ["play-agent", "play-model"]) $(id).addEventListener("change", () => ask());
  window.addEventListener("pagehide", keep);
}

export function linkTo(position) {
  const fields = new URLSearchParams({ game: position.game, board: position.text });
  return `${location.origin}/#play?${fields}`;
}

function onKey(event) {
  if ($("panel-play").hidden || typing(event)) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key in KEYS) {
    event.preventDefault();
    push(KEYS[key]);
  } else if (key === "u" || key === "Backspace") undo();
  else if (key === "n") fresh();
  else if (key === "e" || key === "?") ask();
}

function swipes(element) {
  let origin = null;
  element.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary) return;
    origin = [event.clientX, event.clientY];
    element.setPointerCapture?.(event.pointerId);
  });
  element.addEventListener("pointermove", (event) => {
    if (!origin || !event.isPrimary) return;
    const [dx, dy] = [event.clientX - origin[0], event.clientY - origin[1]];
    if (Math.max(Math.abs(dx), Math.abs(dy)) < SWIPE) return;
    origin = null;
    push(Math.abs(dx) > Math.abs(dy) ? (dx > 0 ? 1 : 3) : dy > 0 ? 2 : 0);
  });
  for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => { origin = null; });
}

function push(action) {
  if (!current || queue.length > 5) return;
  queue.push(action);
  pump();
}

async function pump() {
  if (busy) return;
  busy = true;
  try {
    while (queue.length) {
      const action = queue.shift();
      if (!current.legal.includes(action)) continue;
      const moved = await link.ask("play.move", { action });
      actions += LETTERS[action];
      shown(moved, action);
    }
  } catch (error) {
    queue = [];
    oops(error);
  } finally { busy = false; }
}

async function start(fields) {
  const position = await link.ask("play.new", fields);
  if (current && actions) previous = { game: current.game, seed: current.seed, board: current.board, actions };
  actions = "";
  chooseGame(position.game);
  opened(position);
}

const fresh = () => { if (current) start({ game: current.game }).then(() => $("play-board").focus(), oops); };

async function resume(game) {
  keep();
  const kept = store.get(`play.${game}`);
  try {
    if (kept) {
      const position = await link.ask("play.resume", { game, seed: kept.seed, board: kept.board ?? null, actions: kept.actions });
      actions = kept.actions;
      opened(position);
    } else await start({ game });
  } catch (error) {
    if (link.open) await start({ game }).catch(oops);
    else oops(error);
  }
}

const canGoBack = () => previous?.game === current?.game;

async function undo() {
  if (busy || (!actions && !canGoBack())) return;
  queue = [];
  try {
    if (actions) {
      const position = await link.ask("play.undo");
      actions = actions.slice(0, -1);
      opened(position);
    } else {
      const position = await link.ask("play.resume", previous);
      ({ actions } = previous);
      previous = null;
      opened(position);
      toast("Back in the game before.");
    }
    say(`Undone. Score ${current.score}.`);
  } catch (error) { oops(error); }
}

function opened(position) {
  board.game = position.game;
  $("play-next").querySelector("[data-board]").dataset.palette = position.game;
  board.show(position.cells);
  const other = current?.game !== position.game;
  after(position);
  if (other) document.dispatchEvent(new CustomEvent("models"));
  $("play-seed").value = position.seed;
  store.set("play.game", position.game);
}

function shown(position, action) {
  board.move(position.cells, position.motions);
  if (position.gained) {
    const gain = $("play-gain");
    gain.textContent = `+${number(position.gained)}`;
    gain.classList.remove("show");
    void gain.offsetWidth;
    gain.classList.add("show");
  }
  after(position);
  const merged = position.gained ? `, ${position.gained} points` : "";
  say(`${ACTIONS[action]}${merged}. Score ${position.score}.${position.over ? " No move left." : ""}`);
  if (position.reached) toast(`${number(position.reached)}! The game goes on.`);
}

let keeping = 0;
function after(position) {
  current = position;
  $("play-score").textContent = number(position.score);
  $("play-moves").textContent = number(position.moves);
  const best = Math.max(store.get(`best.${position.game}`, 0), position.board ? 0 : position.score);
  store.set(`best.${position.game}`, best);
  $("play-best").textContent = number(best);
  hint($("play-next"), position.hint);
  $("play-undo").disabled = !actions && !canGoBack();
  $("play-ask").disabled = position.over;
  $("play-over").hidden = !position.over;
  $("play-over-text").textContent = `${number(position.score)} points in ${number(position.moves)} moves, largest tile ${number(position.largest)}.`;
  describe($("play-table"), position.cells);
  clearTimeout(keeping);
  keeping = setTimeout(keep, 400);
  asked++;
  waited();
  bars.clear();
  $("play-ask-note").textContent = "Expected final score of each move.";
  if ($("play-auto").checked && !position.over && !queue.length) ask();
}

function keep() {
  if (current) store.set(`play.${current.game}`, { seed: current.seed, board: current.board, actions });
}

async function ask() {
  if (!current || current.over) return;
  const mine = ++asked;
  const [agent, model] = [$("play-agent").value, $("play-model").value];
  waited();
  waited = patience($("play-ask-note"));
  try {
    const answer = await link.ask("play.ask", { agent, model });
    if (mine !== asked) return;
    waited();
    bars.show(answer.values, answer.best, answer.legal);
    $("play-ask-note").textContent = `${agent} would go ${ACTIONS[answer.best]} ${ARROWS[answer.best]}, after ${duration(answer.think_ms)}.`;
    say(`Advice: ${ACTIONS[answer.best]}.`);
  } catch (error) {
    if (mine === asked) { $("play-ask-note").textContent = "No advice."; oops(error); }
  } finally { if (mine === asked) waited(); }
}

function review() {
  if (!actions) return toast("Make a move first.");
  document.dispatchEvent(new CustomEvent("replay", { detail: { game: current.game, seed: current.seed, board: current.board, actions, title: "Your game" } }));
}

let saying = 0;
function say(text) {
  clearTimeout(saying);
  saying = setTimeout(() => { $("play-live").textContent = text; }, 120);
}
