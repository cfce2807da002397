// The Replay tab: a recorded game position by position. The arrow keys step; W, A, S, D, a swipe or a bar try a move.
import { ask } from "./advice.js";
import { now, on, set, state } from "./state.js";
import { back, forth, go, jump, openNew } from "./table.js";
import { $, api, make, number, oops, toast } from "./util.js";

const MOST_TEXT = 7_500_000; // characters of a file that are sent
const PASTED = "pasted";
const SPEEDS = [1, 2, 5, 10, 30, 100]; // moves a second
let lines = []; // of the records file
let timer = null;
let openGame = null;

export function setupReplay(open) {
  openGame = open;
  const press = (id, act) => $(id).addEventListener("click", act);
  for (const id of ["open-file", "open-file-2"]) press(id, () => $("file").click());
  $("file").addEventListener("change", ({ target }) => { if (target.files[0]) openFile(target.files[0]).catch(oops); target.value = ""; });
  press("first", () => step(() => jump(0)));
  press("back", () => step(back));
  press("forward", () => step(forth));
  press("last", () => step(() => jump(Infinity)));
  press("replay-play", toggle);
  press("play-on", () => { if (state.replay) { const { game } = state.replay; const { text } = state.replay.view(); openNew("play", { game, board: text }).then(() => set({ tab: "play", node: state.play.at }), oops); } });
  $("scrub").addEventListener("input", ({ target }) => { const to = Number(target.value); stop(); jump(to); });
  $("replay-speed").addEventListener("change", () => { if (timer) { stop(); toggle(); } });
  $("replay-speed").replaceChildren(...SPEEDS.map((speed) => make("option", { value: speed, selected: speed === 5 }, `${speed} a second`)));
  on(["tab"], stop);
  on(["node", "game", "tab"], controls);
  drops();
}

function step(act) {
  stop();
  act();
}

export const REPLAY_KEYS = {
  ArrowLeft: () => step(back), ArrowRight: () => step(forth), Home: () => step(() => jump(0)), End: () => step(() => jump(Infinity)),
  PageUp: () => step(() => jump(state.node.ply - 10)), PageDown: () => step(() => jump(state.node.ply + 10)), " ": () => toggle(), e: ask, "?": ask,
};

function toggle() {
  if (timer) return stop();
  const game = state.replay;
  if (!game) return;
  if (!game.at.next) go(game.root);
  const speed = Number($("replay-speed").value);
  const many = Math.max(1, Math.round(speed / 30));
  timer = setInterval(() => {
    let to = game.at;
    for (let i = 0; i < many && to.next; i++) to = to.next;
    if (to === game.at) stop(); else go(to);
  }, (1000 * many) / speed);
  controls();
}

function stop() {
  clearInterval(timer);
  timer = null;
  controls();
}

function controls() {
  const game = now();
  const { node } = state;
  if (!game || !node || state.tab === "watch") return;
  const last = game.path().length - 1;
  for (const id of ["first", "back"]) $(id).disabled = !node.parent;
  for (const id of ["forward", "last"]) $(id).disabled = !node.next;
  $("scrub").max = last;
  $("scrub").value = node.ply;
  $("scrub").setAttribute("aria-valuetext", `move ${node.ply} of ${last}`);
  $("crumb").textContent = state.replay ? state.replay.title : "No game open";
  $("replay-play").setAttribute("aria-label", timer ? "Pause" : "Play");
  $("replay-play").setAttribute("aria-pressed", Boolean(timer));
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
    if (file) openFile(file).catch(oops);
  });
  document.addEventListener("paste", (event) => {
    if (event.target.closest("input, textarea, dialog")) return;
    const text = event.clipboardData.getData("text");
    if (text.trim()) openText(text, PASTED).catch(oops);
  });
}

async function openFile(file) {
  let text = await file.slice(0, MOST_TEXT).text();
  const cut = file.size > MOST_TEXT;
  if (cut) text = text.slice(0, text.lastIndexOf("\n") + 1);
  await openText(text, file.name, cut);
}

// Records, or a position.
async function openText(text, name, cut = false) {
  if (name === PASTED && !/@\d+\|/.test(text) && text.length < 300) {
    const game = state.play?.game ?? state.lab.games[0].name;
    await openNew("play", { game, board: text.trim() });
    return set({ tab: "play", node: state.play.at });
  }
  const found = await api("/api/records", { text });
  lines = text.split("\n");
  $("records").replaceChildren(...found.games.map((game, i) => make("button", { class: "item", "data-line": game.line, onclick: () => choose(game, name).catch(oops) },
    make("span", {}, `${i + 1}`), make("b", {}, `${number(game.score)}`), make("span", {}, `${number(game.moves)} moves`))));
  const left = [cut && "the file is long: only its beginning was read", found.more && `${number(found.more)} more games are not listed`, found.wrong && `${number(found.wrong)} lines were skipped: ${found.first_wrong}`].filter(Boolean);
  $("records-note").textContent = left.join("; ");
  if (left.length) toast(left.join("; "), Boolean(found.wrong));
  await choose(found.games[0], name);
}

async function choose(game, file) {
  for (const item of $("records").children) item.setAttribute?.("aria-current", item.dataset.line === String(game.line));
  await openGame({ record: lines[game.line - 1].replace(/\r$/, ""), game: game.game }, `${file}, line ${game.line}${game.player ? ` · ${game.player}` : ""}`);
}

