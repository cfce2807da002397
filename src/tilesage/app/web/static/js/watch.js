// The Watch tab: an agent plays on the server, which pushes frames; the page says how fast and shows them.
import { Bars } from "./bars.js";
import { Board } from "./board.js";
import { link } from "./socket.js";
import { $, compact, duration, hint, number, oops, patience, seedOf, segments, store, toast } from "./util.js";

const SPEEDS = [1, 2, 5, 10, 20, 60, 200, 0]; // moves a second; 0 is as fast as it goes
const board = new Board($("watch-board"));
const bars = new Bars($("watch-bars"));
let lab = null;
let game = "";
let playing = false;
let opened = false;
let waiting = null; // the newest frame not drawn yet
let spokenAt = 0;
let ready = () => {}; // ends the note that the agent is being prepared

export function setupWatch(laboratory) {
  lab = laboratory;
  game = store.get("watch.game", lab.games[0].name);
  if (!lab.games.some(({ name }) => name === game)) game = lab.games[0].name;
  segments($("watch-games"), lab.games.map(({ name, title }) => [name, title]), game, (name) => {
    game = name;
    store.set("watch.game", name);
    document.dispatchEvent(new CustomEvent("models"));
    begin().catch(oops);
  });
  $("watch-speed").value = store.get("watch.speed", 0);
  speedText();
  $("watch-speed").addEventListener("input", () => { speedText(); store.set("watch.speed", Number($("watch-speed").value)); control(); });
  $("watch-play").addEventListener("click", toggle);
  $("watch-step").addEventListener("click", () => {
    setPlaying(false);
    ready = patience($("watch-think"));
    link.ask("watch.step").catch(oops);
  });
  $("watch-new").addEventListener("click", () => begin().catch(oops));
  $("watch-to-replay").addEventListener("click", review);
  for (const id of ["watch-agent", "watch-model"]) $(id).addEventListener("change", () => begin().catch(oops));
  $("watch-seed").addEventListener("change", () => begin().catch(oops));
  document.addEventListener("keydown", (event) => {
    if ($("panel-watch").hidden || event.target.closest("input, select, textarea, button")) return;
    if (event.key === " ") { event.preventDefault(); toggle(); }
  });
  link.on("watch", (frame) => {
    link.send("watch.seen", { frame: frame.frame });
    if (!waiting) requestAnimationFrame(draw);
    waiting = frame;
  });
  link.on("watch.failed", ({ error }) => { ready(); setPlaying(false); toast(error, true); });
  link.on("link", (up) => { if (!up) { opened = false; setPlaying(false); } });
}

export const watchGame = () => game;
export const enterWatch = () => { if (!opened && link.open) begin().catch(oops); };
export const leaveWatch = () => { if (playing) toggle(); };

const speed = () => SPEEDS[Number($("watch-speed").value)];

function speedText() {
  const rate = speed();
  const text = rate === 0 ? "as fast as it goes" : rate === 1 ? "1 move a second" : `${rate} moves a second`;
  $("watch-speed-text").textContent = text;
  $("watch-speed").setAttribute("aria-valuetext", text);
}

async function begin() {
  opened = true;
  const fields = { game, agent: $("watch-agent").value, model: $("watch-model").value, seed: seedOf($("watch-seed")), speed: speed(), paused: !playing };
  waiting = null;
  ready();
  const started = await link.ask("watch.start", fields);
  board.game = game;
  $("watch-next").querySelector("[data-board]").dataset.palette = game;
  bars.clear();
  for (const id of ["watch-rate", "watch-time", "watch-mean"]) $(id).textContent = "–";
  $("watch-games-done").textContent = "0";
  board.show(started.cells);
  facts(started);
  if (playing) ready = patience($("watch-think"));
}

function toggle() {
  if (!opened) return begin().then(toggle, oops);
  setPlaying(!playing);
  if (playing) ready = patience($("watch-think"), "");
  control();
}

function setPlaying(on) {
  playing = on;
  $("watch-play").textContent = on ? "Pause" : "Play";
  $("watch-play").setAttribute("aria-pressed", on);
}

const control = () => { if (opened) link.ask("watch.control", { speed: speed(), paused: !playing }).catch(oops); };

function draw() {
  const frame = waiting;
  waiting = null;
  ready();
  $("watch-think").textContent = "";
  if (!frame || frame.game !== game) return;
  if (frame.motions && (speed() > 0 && speed() <= 10)) board.move(frame.cells, frame.motions);
  else board.show(frame.cells);
  facts(frame);
  if (frame.values) bars.show(frame.values, frame.best, frame.choices);
  if (frame.rate) $("watch-rate").textContent = frame.rate >= 100 ? compact(frame.rate) : frame.rate.toFixed(1);
  if (frame.think_ms) $("watch-time").textContent = `${duration(frame.think_ms)} a move`;
  $("watch-games-done").textContent = number(frame.games);
  $("watch-mean").textContent = frame.games ? number(frame.mean) : "–";
  const now = performance.now();
  if (now - spokenAt > 5000 || frame.over) {
    spokenAt = now;
    $("watch-live").textContent = `Score ${frame.score}, largest tile ${frame.largest}.${frame.over ? " Game over." : ""}`;
  }
}

function facts(frame) {
  $("watch-score").textContent = number(frame.score);
  $("watch-largest").textContent = number(frame.largest);
  $("watch-moves").textContent = number(frame.moves);
  hint($("watch-next"), frame.hint);
}

async function review() {
  try {
    const record = await link.ask("watch.record");
    if (!record.actions) return toast("Let it make a move first.");
    document.dispatchEvent(new CustomEvent("replay", { detail: { ...record, title: `Game of ${record.agent}` } }));
  } catch (error) { oops(error); }
}
