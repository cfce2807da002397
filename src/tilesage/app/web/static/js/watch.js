// The Watch tab: an agent plays on the server, which pushes frames; the page says how fast and shows them. The moves are
// kept here too, so that a lost connection, a restarted server or a reload goes on where it was.
import { answered, clearWatched, player, showWatched } from "./advice.js";
import { keep, keptGames, mark, newId } from "./kept.js";
import { firstGame } from "./play.js";
import { Game } from "./game.js";
import { link } from "./socket.js";
import { say } from "./stage.js";
import { on, set, state, tell } from "./state.js";
import { openGame } from "./table.js";
import { $, compact, duration, number, oops, patience, seedOf, store, toast } from "./util.js";

const SPEEDS = [1, 2, 5, 10, 20, 60, 200, 0]; // moves a second; 0 is as fast as it goes
const MOST_POINTS = 2000; // of the graph
let waiting = null; // the newest frame not drawn yet
let letters = []; // of the game on the board
let finished = null; // the game before
let spoken = 0;
let opening = null;
let ready = () => {}; // ends the note that the agent is being prepared

class Watched extends Game {
  constructor(meta, position) {
    super(meta, [position]);
    this.course = [];
  }

  get empty() { return !letters.length; }

  // Only the newest position is held.
  show(position, still) {
    this.at = { ...position, parent: null, follows: this.at, still, children: [], next: null, opinions: {}, ply: 0 };
    if (this.at.follows) this.at.follows.follows = null;
    return this.at;
  }

  kept() {
    const { id, kind, game, seed, title } = this;
    const { score, moves } = this.view();
    return { id, kind, game, seed, board: null, record: null, title, actions: letters.join(""), extra: [], at: moves, end: moves, score, moves, when: Date.now() };
  }
}

export function setupWatch() {
  $("speed").value = store.get("watch.speed", 0);
  speedText();
  $("speed").addEventListener("input", () => { speedText(); store.set("watch.speed", Number($("speed").value)); control(); });
  $("watch-play").addEventListener("click", toggle);
  $("watch-step").addEventListener("click", () => {
    set({ watching: false });
    ready = patience($("advice-note"));
    started().then(() => link.ask("watch.step")).catch(oops);
  });
  $("watch-new").addEventListener("click", () => begin({ seed: seedOf($("watch-seed")) }).catch(oops));
  $("watch-analyse").addEventListener("click", review);
  $("watch-seed").addEventListener("change", () => { try { begin({ seed: seedOf($("watch-seed")) }).catch(oops); } catch (error) { oops(error); } });
  on(["player"], () => begin({}).catch((error) => { answered(false); oops(error); }));
  on(["watching"], () => {
    $("watch-play").textContent = state.watching ? "Pause" : "Play";
    $("watch-play").setAttribute("aria-pressed", state.watching);
  });
  on(["tab"], () => {
    if (state.tab === "watch") { if (state.up) started().catch(oops); } else if (state.watching) toggle();
    if (state.tab !== "watch") save();
  });
  link.on("watch", (frame) => {
    link.send("watch.seen", { frame: frame.frame });
    take(frame);
    if (!waiting) requestAnimationFrame(draw);
    waiting = frame;
  });
  link.on("watch.failed", ({ error }) => { ready(); set({ watching: false }); toast(error, true); });
  link.on("link", (up) => {
    opening = null;
    if (up && state.tab === "watch") started().catch(oops);
  });
  window.addEventListener("pagehide", save);
  document.addEventListener("watch-model", ({ detail }) => { // of Learn: let this model play
    store.set("watch.model", detail.model);
    store.set("watch.game", detail.game);
    set({ tab: "watch", node: state.watch?.at ?? null });
    watchGame(detail.game);
  });
}

const speed = () => SPEEDS[Number($("speed").value)];

function speedText() {
  const rate = speed();
  const text = rate === 0 ? "as fast as it goes" : rate === 1 ? "1 move a second" : `${rate} moves a second`;
  $("speed-text").textContent = text;
  $("speed").setAttribute("aria-valuetext", text);
}

// The watched game, begun or brought back, once.
function started() {
  opening ??= state.watch ? begin({ seed: state.watch.seed, actions: letters.join(""), id: state.watch.id }) : brought();
  return opening;
}

function brought() {
  const kept = keptGames("watch", firstGame("watch"))[0];
  const free = kept && !store.get(`open.${kept.id}`); // no other tab has it open
  return kept ? begin({ seed: kept.seed, actions: kept.actions, id: free ? kept.id : newId() }) : begin({});
}

export function watchGame(game) {
  save();
  store.set("watch.game", game);
  set({ watch: null });
  tell("game"); // agents and models of this game
  return begin({ game }).catch(oops);
}

function begin(fields) {
  opening = open(fields).catch((error) => { opening = null; throw error; });
  return opening;
}

async function open({ game = state.watch?.game ?? firstGame("watch"), seed = null, actions = "", id = newId() }) {
  save();
  ready();
  waiting = null;
  const answer = await link.ask("watch.start", { game, ...player(), seed, actions, speed: speed(), paused: !state.watching });
  answered(true);
  letters = [...actions];
  finished = null;
  const watched = new Watched({ id, kind: "watch", game, seed: answer.seed, title: player().agent }, answer);
  store.set("watch.game", game);
  set(state.tab === "watch" ? { watch: watched, node: watched.at } : { watch: watched });
  tell("game");
  clearWatched();
  for (const id of ["watch-rate", "watch-time", "watch-mean"]) $(id).textContent = "–";
  $("watch-games-done").textContent = "0";
  if (state.watching) ready = patience($("advice-note"));
}

function toggle() {
  set({ watching: !state.watching });
  if (state.watching) ready = patience($("advice-note"), "");
  started().then(control).catch((error) => { set({ watching: false }); oops(error); });
}

export const WATCH_KEYS = { " ": toggle };

const control = () => link.ask("watch.control", { speed: speed(), paused: !state.watching }).catch(oops);

function save() {
  if (!state.watch || !letters.length) return;
  mark(state.watch);
  keep(state.watch);
}

// Every frame counts, drawn or not: its moves belong to the game.
function take(frame) {
  const { watch } = state;
  if (!watch || frame.game !== watch.game) return;
  if (frame.seed !== watch.seed) {
    save();
    finished = { seed: watch.seed, actions: letters.join("") };
    letters = [];
    Object.assign(watch, { id: newId(), seed: frame.seed, course: [] });
  }
  if (frame.letters) letters.push(...frame.letters);
  if (!frame.values) return;
  const value = frame.values[frame.best];
  const score = Number(/ score=(\d+)/.exec(frame.line)?.[1] ?? 0);
  watch.figure = frame.figure;
  if (typeof value === "number") watch.course.push({ ply: letters.length, score, value });
  if (watch.course.length > MOST_POINTS) watch.course = watch.course.filter((_, i) => i % 2 === 0);
}

function draw() {
  const frame = waiting;
  waiting = null;
  ready();
  const { watch } = state;
  if (!frame || !watch || frame.game !== watch.game || state.tab !== "watch") return;
  const fast = speed() === 0 || speed() > 10;
  set({ node: watch.show({ line: frame.line, legal: frame.legal, motions: frame.motions, action: frame.action ?? null }, fast) });
  showWatched(frame, fast);
  tell("watched");
  if (frame.rate) $("watch-rate").textContent = frame.rate >= 100 ? compact(frame.rate) : frame.rate.toFixed(1);
  if (frame.think_ms) $("watch-time").textContent = `${duration(frame.think_ms)} a move`;
  $("watch-games-done").textContent = number(frame.games);
  $("watch-mean").textContent = frame.games ? number(frame.mean) : "–";
  if (performance.now() - spoken < 8000 && frame.legal.length) return;
  spoken = performance.now();
  const { score, largest } = watch.view();
  say(`Score ${score}, largest tile ${largest}.${frame.legal.length ? "" : " Game over."}`);
}

async function review() {
  if (state.watching) toggle();
  const now = letters.length ? { seed: state.watch.seed, actions: letters.join("") } : finished;
  if (!now) return toast("Let it make a move first.");
  const { game, title } = state.watch;
  tell("analyse");
  await openGame({ game, board: null, ...now }, `Game of ${title}`, now.actions.length).catch(oops);
}
