// What an agent thinks of the position: bars, and on the board an arrow and what the other moves give away.
import { idle } from "./deeds.js";
import { Bars } from "./bars.js";
import { link } from "./socket.js";
import { board, say } from "./stage.js";
import { now, on, state, tell } from "./state.js";
import { move } from "./table.js";
import { $, ACTIONS, ARROWS, duration, fill, number, oops, patience, store } from "./util.js";

const OTHER = "…"; // the last choice of agent: one that is written in
const bars = new Bars($("bars"), (action) => { if (state.tab !== "watch") move(action); });
let waited = () => {};
let asking = 0;

export function setupAdvice() {
  $("auto").checked = store.get("play.auto", false);
  $("auto").addEventListener("change", ({ target }) => { store.set("play.auto", target.checked); show(); });
  $("ask").addEventListener("click", ask);
  $("agent").addEventListener("change", chooseAgent);
  $("model").addEventListener("change", ({ target }) => { store.set(`${state.tab}.model`, target.value); changed(); });
  on(["tab", "game", "lab"], players);
  on(["node", "tab"], show);
  on(["judging"], mark);
}

const readsModel = (agent) => state.lab.agents.find(({ spec }) => spec === agent)?.model ?? true;

// Who is asked on this tab; each tab remembers its own.
export const player = () => ({ agent: $("agent").value, model: $("model").value });
export const playerKey = () => `${$("agent").value}|${$("model").value}`;

function players() {
  if (!state.lab || state.tab === "learn") return;
  const game = now()?.game ?? store.get(`${state.tab}.game`, state.lab.games[0].name);
  const models = state.lab.models.filter((model) => model.game === game);
  const kept = written ?? store.get(`${state.tab}.agent`, models.length ? state.lab.agents[0].spec : "mcts:400");
  const menu = state.lab.agents.map(({ spec, title }) => [spec, title]);
  if (!menu.some(([spec]) => spec === kept)) menu.unshift([kept, kept]);
  fill($("agent"), [...menu, [OTHER, "another…"]], kept);
  fill($("model"), models.length ? models.map(({ name, title }) => [name, title]) : [["", "none found"]], store.get(`${state.tab}.model`));
  $("model").disabled = !readsModel(kept);
}

let written = null; // an agent that was written in, and is remembered when it has answered
let before = null;

function chooseAgent({ target }) {
  before = store.get(`${state.tab}.agent`, state.lab.agents[0].spec);
  if (target.value !== OTHER) {
    store.set(`${state.tab}.agent`, target.value);
    written = null;
  } else {
    const typed = window.prompt("Which agent? Such as expectimax:500ms, mcts:2000 or rollouts:50", before)?.trim();
    if (!typed || typed === before) return players();
    written = typed;
    players();
  }
  $("model").disabled = !readsModel(target.value);
  changed();
}

function changed() {
  if (state.tab === "watch") tell("player"); else ask();
}

// The agent has answered, or it has not: one that was written in wrongly is not remembered.
export function answered(well) {
  if (!written) return;
  if (well) store.set(`${state.tab}.agent`, written);
  written = null;
  if (!well) players();
}

function show() {
  if (state.tab === "watch" || state.tab === "learn") { if (state.tab === "watch") board.advise(null); return; }
  const { node } = state;
  waited();
  asking++;
  const opinion = node?.opinions[playerKey()];
  draw(opinion);
  $("ask").disabled = !node || !node.legal.length;
  if (node && !opinion && $("auto").checked && node.legal.length && idle()) ask();
  else if (node && !opinion && $("auto").checked && node.legal.length) setTimeout(() => { if (state.node === node && !node.opinions[playerKey()]) ask(); }, 60);
}

function draw(opinion) {
  const { node } = state;
  bars.show(opinion, node?.legal);
  board.advise(opinion, node?.legal);
  $("advice-note").textContent = opinion ? `${title(opinion.figure)} if ${ARROWS[opinion.best]} ${ACTIONS[opinion.best]}, and what the other moves give away. ${duration(opinion.think_ms)}.` : "What each move is worth, and what it gives away.";
  mark();
}

export const title = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// The move that was made from here, where the game went on.
function mark() {
  const next = state.node?.next;
  for (const [i, { row }] of bars.rows.entries()) row.classList.toggle("played", Boolean(next) && next.action === i);
}

export async function ask() {
  const { node } = state;
  const game = now();
  if (!node || !node.legal.length || state.tab === "watch") return;
  const mine = ++asking;
  const key = playerKey();
  waited();
  waited = patience($("advice-note"));
  try {
    const answer = await link.ask("advice", { game: game.game, line: node.line, ...player() });
    node.opinions[key] = answer;
    answered(true);
    if (mine !== asking) return;
    waited();
    draw(answer);
    say(`Advice: ${ACTIONS[answer.best]}.`);
  } catch (error) {
    if (mine !== asking) return;
    $("advice-note").textContent = "No advice.";
    answered(false);
    oops(error);
  } finally { if (mine === asking) waited(); }
}

// In Watch: what the program thought of the move that it has just made.
export function showWatched(frame, still) {
  if (!frame.values) return bars.show(null, [0, 1, 2, 3], still);
  bars.show(frame, frame.choices, still);
  const value = frame.values[frame.best];
  $("advice-note").textContent = `The move just made: ${ARROWS[frame.action]} ${ACTIONS[frame.action]}. ${typeof value === "number" ? `${title(frame.figure)} ${number(value)}.` : ""}`;
}

export const clearWatched = () => { bars.show(null); $("advice-note").textContent = ""; };
