// The Replay tab: a recorded game position by position, its score as a strip, its mistakes as marks.
import { Board } from "./board.js";
import { link } from "./socket.js";
import { $, ACTIONS, ARROWS, api, copy, hint, make, number, oops, store, toast, typing } from "./util.js";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const MOST_TEXT = 7_500_000; // characters of a file that are sent
const STEP_MS = 220;
const board = new Board($("replay-board"));
let lab = null;
let played = null; // the game: positions, motions, scores …
let source = null; // what it came from, to ask for its mistakes
let lines = []; // of the records file
let at = 0;
let timer = null;
let mistakes = [];

export function setupReplay(laboratory) {
  lab = laboratory;
  const press = (id, act) => $(id).addEventListener("click", act);
  for (const id of ["replay-open", "replay-open-2"]) press(id, () => $("replay-file").click());
  $("replay-file").addEventListener("change", ({ target }) => { if (target.files[0]) openFile(target.files[0]).catch(oops); target.value = ""; });
  press("replay-demo", demo);
  press("replay-first", () => jump(0));
  press("replay-back", () => jump(at - 1));
  press("replay-forward", forward);
  press("replay-last", () => jump(Infinity));
  press("replay-play", toggle);
  press("replay-share", () => withText((text) => copy(`${location.origin}/#play?${new URLSearchParams({ game: played.game, board: text })}`, "Link to this position copied.")));
  press("replay-play-on", () => withText((text) => document.dispatchEvent(new CustomEvent("play-on", { detail: { game: played.game, text } }))));
  press("replay-mistakes", find);
  $("replay-scrub").addEventListener("input", ({ target }) => { stop(); show(Number(target.value), false); });
  $("replay-strip").addEventListener("pointerdown", ({ offsetX, target }) => { if (played) jump(Math.round((offsetX / target.clientWidth) * last())); });
  document.addEventListener("keydown", onKey);
  document.addEventListener("theme", strip);
  link.on("replay.progress", ({ done }) => { $("replay-mistakes").textContent = `${Math.round(100 * done)} %`; });
  drops();
  new ResizeObserver(strip).observe($("replay-strip"));
  controls();
}

const last = () => (played ? played.positions.length - 1 : 0);

function onKey(event) {
  if ($("panel-replay").hidden || !played || typing(event)) return;
  const acts = { ArrowLeft: () => jump(at - 1), ArrowRight: forward, Home: () => jump(0), End: () => jump(Infinity), PageUp: () => jump(at - 10), PageDown: () => jump(at + 10) };
  if (event.key === " " && event.target.tagName !== "BUTTON") acts[" "] = toggle;
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
}

function drops() {
  let depth = 0;
  const over = (by) => { depth = Math.max(0, depth + by); document.body.classList.toggle("dropping", depth > 0); };
  document.addEventListener("dragenter", (event) => { if ([...event.dataTransfer.types].includes("Files")) over(1); });
  document.addEventListener("dragleave", () => over(-1));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    over(-Infinity);
    const file = event.dataTransfer.files[0];
    if (!file) return;
    $("tab-replay").click();
    openFile(file).catch(oops);
  });
}

async function openFile(file) {
  let text = await file.slice(0, MOST_TEXT).text();
  const cut = file.size > MOST_TEXT;
  if (cut) text = text.slice(0, text.lastIndexOf("\n") + 1);
  const found = await api("/api/records", { text });
  lines = text.split("\n");
  $("replay-list").replaceChildren(...found.games.map((game, i) => make("button", { class: "item", "data-line": game.line, onclick: () => choose(game, file.name) },
    make("span", {}, `${i + 1}`), make("b", {}, `${number(game.score)}`), make("span", {}, `${number(game.moves)} moves`))));
  if (cut) toast(`The file is long: its first ${number(found.games.length)} games are listed.`);
  else if (found.wrong) toast(`${found.wrong} lines are no game records.`, true);
  await choose(found.games[0], file.name);
}

async function choose(game, file) {
  for (const item of $("replay-list").children) item.setAttribute("aria-current", item.dataset.line === String(game.line));
  try { await openReplay({ record: lines[game.line - 1], title: `${file}, line ${game.line}${game.player ? ` · ${game.player}` : ""}` }); } catch (error) { oops(error); }
}

async function demo() {
  const agent = $("replay-agent").value;
  $("replay-demo").disabled = true;
  try {
    const record = await link.ask("replay.demo", { game: store.get("play.game", lab.games[0].name), agent, model: $("replay-model").value });
    await openReplay({ ...record, title: `A game of ${agent}` });
  } catch (error) { oops(error); } finally { $("replay-demo").disabled = false; }
}

export async function openReplay({ title, ...from }) {
  stop();
  const fields = from.record ? { record: from.record } : { game: from.game, seed: from.seed, board: from.board ?? null, actions: from.actions };
  const answer = await api("/api/replay", fields);
  const { tiles } = lab.games.find(({ name }) => name === answer.game);
  played = { ...answer, cells: (i) => [...answer.positions[i]].map((digit) => tiles[DIGITS.indexOf(digit)]) };
  source = fields;
  mistakes = [];
  document.body.dataset.replayGame = played.game;
  document.dispatchEvent(new CustomEvent("models"));
  board.game = played.game;
  $("replay-next").querySelector("[data-board]").dataset.palette = played.game;
  $("replay-title").textContent = title;
  $("replay-empty").hidden = true;
  $("replay-scrub").max = last();
  $("replay-mistakes").textContent = "Find them";
  $("replay-mistake-list").replaceChildren(make("p", { class: "empty" }, "Where did the game lose most? The agent goes through it move by move."));
  show(0, false);
}

function show(index, animate) {
  if (!played) return;
  const cells = played.cells(index);
  if (animate && index === at + 1) board.move(cells, played.motions[at]);
  else board.show(cells);
  at = index;
  const largest = Math.max(...cells);
  $("replay-score").textContent = number(played.scores[at]);
  $("replay-largest").textContent = number(largest);
  $("replay-move").textContent = number(at);
  $("replay-scrub").value = at;
  $("replay-scrub").setAttribute("aria-valuetext", `move ${at} of ${last()}, score ${played.scores[at]}`);
  $("replay-live").textContent = timer ? "" : `Move ${at}. Score ${played.scores[at]}, largest tile ${largest}.`;
  hint($("replay-next"), played.hints?.[at]);
  for (const item of $("replay-mistake-list").children) item.setAttribute("aria-current", item.dataset.move === String(at));
  strip();
  controls();
}

function jump(index) {
  stop();
  show(Math.max(0, Math.min(last(), index)), false);
}

function forward() {
  stop();
  if (at < last()) show(at + 1, true);
}

function toggle() {
  if (timer) return stop();
  if (!played) return;
  if (at >= last()) show(0, false);
  timer = setInterval(() => { if (at < last()) show(at + 1, true); else stop(); }, STEP_MS);
  controls();
}

function stop() {
  clearInterval(timer);
  timer = null;
  controls();
}

function controls() {
  const none = !played;
  for (const id of ["replay-first", "replay-back"]) $(id).disabled = none || at === 0;
  for (const id of ["replay-forward", "replay-last"]) $(id).disabled = none || at === last();
  for (const id of ["replay-play", "replay-share", "replay-play-on", "replay-scrub"]) $(id).disabled = none;
  $("replay-mistakes").disabled = none || !played.actions;
  $("replay-play").setAttribute("aria-label", timer ? "Pause" : "Play");
  $("replay-play").setAttribute("aria-pressed", Boolean(timer));
}

// The text of the position on the screen: its tiles, and what is known of the next one.
function withText(use) {
  if (!played) return;
  use(`${played.cells(at).join(" ")} ${played.fields?.[at] ?? `score=${played.scores[at]}`}`);
}

async function find() {
  const button = $("replay-mistakes");
  const game = played;
  button.disabled = true;
  try {
    const answer = await link.ask("replay.mistakes", { ...source, agent: $("replay-agent").value, model: $("replay-model").value });
    if (game !== played) return;
    mistakes = answer.mistakes;
    $("replay-mistake-list").replaceChildren(...(mistakes.length ? mistakes.map(mistake) : [make("p", { class: "empty" }, "None: the agent would have played every move.")]));
    strip();
    if (mistakes.length) jump(mistakes[0].move);
  } catch (error) { oops(error); } finally { button.disabled = false; button.textContent = "Find them"; }
}

function mistake({ move, loss, chosen, best }) {
  return make("button", { class: "item", "data-move": move, onclick: () => jump(move) },
    make("span", {}, `${number(move)}`), make("span", {}, `${ARROWS[chosen]} ${ACTIONS[chosen]}, better ${ARROWS[best]} ${ACTIONS[best]}`), make("span", { class: "loss" }, `−${number(loss)}`));
}

// The score over the game, where we are, and the mistakes.
function strip() {
  const canvas = $("replay-strip");
  const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
  if (!width) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name);
  pen.scale(ratio, ratio);
  pen.fillStyle = colour("--sunk");
  pen.fillRect(0, 0, width, height);
  if (!played) return;
  const x = (i) => 8 + (i / Math.max(1, last())) * (width - 16); // the thumb of the slider below is 16 wide
  const high = Math.max(1, played.scores[last()]); // a score never falls
  pen.beginPath();
  pen.moveTo(x(0), height);
  const stride = Math.max(1, Math.floor(last() / width));
  for (let i = 0; i <= last(); i += stride) pen.lineTo(x(i), height - 2 - (played.scores[i] / high) * (height - 12));
  pen.lineTo(x(last()), height - 2 - (played.scores[last()] / high) * (height - 12));
  pen.lineTo(x(last()), height);
  pen.fillStyle = colour("--accent-soft");
  pen.fill();
  pen.strokeStyle = colour("--accent");
  pen.lineWidth = 1.5;
  pen.stroke();
  pen.fillStyle = colour("--bad");
  for (const { move } of mistakes) { pen.beginPath(); pen.arc(x(move), 7, 4, 0, 7); pen.fill(); }
  pen.fillStyle = colour("--text");
  pen.fillRect(x(at) - 1, 0, 2, height);
}
