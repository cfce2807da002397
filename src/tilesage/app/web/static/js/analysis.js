// The analysis of a game: what was expected at every move, what each move gave away, and where it went wrong.
//
// A move's share is what it gives away of the figure of its position. Classes: an inaccuracy gives away 0.5 % or more, a
// mistake 2 %, a blunder 5 %. Neighbouring ones are one incident. Accuracy is the mean of 100 · exp(−50 · share).
import { player, playerKey, title } from "./advice.js";
import { Plot, axis, colour } from "./plot.js";
import { link } from "./socket.js";
import { say } from "./stage.js";
import { now, on, set, state, tell } from "./state.js";
import { go, jump } from "./table.js";
import { $, ACTIONS, ARROWS, LETTERS, compact, make, number, oops } from "./util.js";

const CHUNK = 400; // moves that are sent at once
const NEAR = 8; // moves within which two mistakes are one incident
const SHOWN = 12; // incidents in the list
const CLASSES = [[0.05, "blunder"], [0.02, "mistake"], [0.005, "inaccuracy"]];
const PLURAL = { blunder: "blunders", mistake: "mistakes", inaccuracy: "inaccuracies" };
let run = 0;
let plot = null;
let drawn = 0;

export function setupAnalysis() {
  plot = new Plot($("graph"), options);
  $("judge").addEventListener("click", () => (state.judging ? stop() : judge()));
  on(["node", "game", "tab", "judged", "watched"], later);
  on(["judging"], () => { $("judge").textContent = state.judging ? "Stop" : "Analyse"; });
  on(["game"], stop);
}

export const classOf = ({ value, loss }) => CLASSES.find(([share]) => loss / Math.max(1, value) >= share)?.[1] ?? "";

function stop() {
  run++;
  set({ judging: false });
}

// Judge the moves of the path that have not been judged by this player; what is there is shown as it comes.
async function judge() {
  const game = now();
  const path = game?.path() ?? [];
  if (path.length < 2) return say("Make a move first.");
  const mine = ++run;
  const key = playerKey();
  set({ judging: true });
  try {
    for (let at = 0; at < path.length - 1;) {
      if (path[at].judged?.key === key && path[at].judged.next === path[at + 1]) { at++; continue; }
      const part = path.slice(at, at + CHUNK + 1);
      const answer = await link.ask("judge", { game: game.game, lines: part.map(({ line }) => line).join("\n"), actions: game.letters(part), ...player() });
      if (mine !== run) return;
      answer.values.forEach((value, i) => {
        path[at + i].judged = value === null ? null : { key, value, loss: answer.losses[i] ?? 0, best: LETTERS.indexOf(answer.best[i]), next: path[at + i + 1] };
      });
      game.figure = answer.figure;
      at += answer.values.length;
      $("judge-note").textContent = `${Math.round((100 * at) / (path.length - 1))} % of the moves`;
      tell("judged");
    }
    if (!path.some(({ judged }) => judged)) throw new Error("This agent has no figures for the moves: choose another one.");
    const first = incidents(path)[0];
    if (first && state.tab === "replay") go(path[first.worst]);
    say(first ? `The worst move is number ${first.worst}.` : "No mistakes were found.");
  } catch (error) { if (mine === run) oops(error); } finally { if (mine === run) { set({ judging: false }); $("judge-note").textContent = ""; tell("judged"); } }
}

// Mistakes that lie close together are one incident, worst first: [{from, to, worst, loss, kind}].
export function incidents(path) {
  const found = [];
  path.forEach((node, i) => {
    const kind = node.judged && node.judged.next === path[i + 1] ? classOf(node.judged) : "";
    if (!kind) return;
    const last = found[found.length - 1];
    const { loss } = node.judged;
    if (last && i - last.to <= NEAR) {
      if (loss > path[last.worst].judged.loss) Object.assign(last, { worst: i, kind });
      Object.assign(last, { to: i, loss: last.loss + loss, count: last.count + 1 });
    } else found.push({ from: i, to: i, worst: i, loss, kind, count: 1 });
  });
  return found.sort((a, b) => b.loss - a.loss);
}

let pending = 0;
function later() {
  if (pending) return;
  const wait = state.judging ? Math.max(0, 250 - (performance.now() - drawn)) : 0;
  pending = setTimeout(() => requestAnimationFrame(() => { pending = 0; drawn = performance.now(); draw(); }), wait);
}

function draw() {
  const game = now();
  if (state.tab === "learn") return;
  if (state.tab === "watch") return course(game);
  const path = game?.path() ?? [];
  const told = path.map((node, i) => (node.judged && node.judged.next === path[i + 1] ? node.judged : null));
  const any = told.some(Boolean);
  $("judge").disabled = path.length < 2;
  $("graph-empty").hidden = path.length > 1;
  if (path.length > 1) {
    plot.show([path.map((_, i) => i), path.map((node) => game.view(node).score), told.map((j) => j?.value ?? null), told.map((j) => j?.loss ?? null), told.map((j) => (j && classOf(j) ? j.value : null))]);
    $("graph").dataset.points = path.length;
    $("graph").dataset.judged = told.filter(Boolean).length;
  }
  $("graph").setAttribute("aria-label", any ? summary(told) : "Score over the game");
  $("analysis-sum").textContent = any ? summary(told) : "";
  $("analysis-figure").textContent = any ? `${title(game.figure)}, the score, and what each move gave away.` : path.length > 1 ? "The score over the game." : "";
  list(any ? incidents(path).slice(0, SHOWN) : null, path);
  variations(game);
  if (game) here(game.at, path);
}

function here(node, path) {
  const judged = node.judged && node.judged.next === path[node.ply + 1] ? node.judged : null;
  const kind = judged ? classOf(judged) : "";
  $("here").textContent = !judged ? "" : judged.loss < 0.5 ? `Played ${ARROWS[node.next.action]} ${ACTIONS[node.next.action]}: ${judged.best === node.next.action ? "the best move" : "as good as the best"}.`
    : `Played ${ARROWS[node.next.action]} ${ACTIONS[node.next.action]}, −${number(judged.loss)}${kind ? `, ${kind === "inaccuracy" ? "an" : "a"} ${kind}` : ""}; better ${ARROWS[judged.best]} ${ACTIONS[judged.best]}.`;
}

function summary(told) {
  const judged = told.filter(Boolean);
  const counts = CLASSES.map(([, kind]) => [kind, judged.filter((one) => classOf(one) === kind).length]);
  const accuracy = judged.reduce((sum, { value, loss }) => sum + Math.exp((-50 * loss) / Math.max(1, value)), 0) / judged.length;
  return `Accuracy ${(100 * accuracy).toFixed(1)} % · ${counts.map(([kind, count]) => `${number(count)} ${count === 1 ? kind : PLURAL[kind]}`).join(" · ")}`;
}

// What was chosen below the board is seen on it.
function inView() {
  $("board").focus({ preventScroll: true });
  $("board").scrollIntoView({ block: "nearest" });
}

let listed = "";
function list(found, path) {
  const key = JSON.stringify([state.tab, now()?.id, found?.map(({ from, to, loss }) => [from, to, Math.round(loss)])]);
  const items = $("incidents");
  if (key !== listed) {
    listed = key;
    items.replaceChildren(...(found ?? []).map((one) => make("button", { class: "item", "data-move": one.worst, onclick: () => { jump(one.worst); inView(); } },
      make("span", {}, number(one.worst)), make("span", {}, `${one.kind}: ${ARROWS[path[one.worst].next.action]}, better ${ARROWS[path[one.worst].judged.best]}${one.count > 1 ? ` (${one.count} moves)` : ""}`), make("span", { class: "loss" }, `−${number(one.loss)}`))));
    if (found && !found.length) items.append(make("p", { class: "empty" }, "No mistakes: nothing was given away."));
  }
  for (const item of items.children) item.setAttribute?.("aria-current", item.dataset.move === String(state.node?.ply));
}

function variations(game) {
  const tried = game?.variations() ?? [];
  $("variations").hidden = !tried.length;
  $("variation-list").replaceChildren(...tried.slice(-SHOWN).reverse().map((node) => {
    let length = 1;
    for (let end = node; end.next; end = end.next) length++;
    return make("button", { class: "item", onclick: () => { go(node); inView(); } }, make("span", {}, number(node.parent.ply)), make("span", {}, `${ARROWS[node.action]} ${ACTIONS[node.action]}${node.byHand ? ", chance by hand" : ""}`), make("span", {}, `${length} move${length > 1 ? "s" : ""}`));
  }));
}

// In Watch the graph grows with the game.
function course(game) {
  const points = game?.course ?? [];
  $("graph-empty").hidden = points.length > 1;
  $("graph").dataset.points = points.length;
  if (points.length > 1) plot.show([points.map(({ ply }) => ply), points.map(({ score }) => score), points.map(({ value }) => value), points.map(() => null), points.map(() => null)]);
  for (const id of ["analysis-sum", "here"]) $(id).textContent = "";
  $("analysis-figure").textContent = points.length > 1 && game.figure ? `${title(game.figure)} and score.` : "";
  list(null, []);
  variations(null);
}

function options() {
  const height = $("graph").clientHeight;
  return {
    legend: { show: false }, padding: [10, 10, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 1) * 1.05] }, loss: { range: (_, low, high) => [0, 3 * (high || 1)] } },
    axes: [axis({ size: 28, space: 70 }), axis({ size: 50, space: Math.max(30, height / 5) })],
    series: [
      {},
      { stroke: colour("--line-strong"), width: 1, points: { show: false } },
      { stroke: colour("--accent"), width: 2, points: { show: false } },
      { stroke: colour("--bad"), fill: colour("--bad"), width: 1, scale: "loss", paths: window.uPlot.paths.bars({ size: [1, 6] }), points: { show: false } },
      { stroke: colour("--bad"), paths: () => null, points: { show: true, size: 7, fill: colour("--bad") } },
    ],
    hooks: {
      ready: [(made) => made.over.addEventListener("click", () => { if (state.tab !== "watch" && made.cursor.idx !== null) jump(made.data[0][made.cursor.idx]); })],
      setCursor: [(made) => { const at = made.cursor.idx; $("graph").title = at === null || at === undefined || !made.data[0].length ? "" : `move ${number(made.data[0][at])}, score ${compact(made.data[1][at])}${typeof made.data[2][at] === "number" ? `, ${compact(made.data[2][at])} expected` : ""}`; }],
      draw: [(made) => {
        if (state.tab === "watch" || !state.node) return;
        const x = made.valToPos(state.node.ply, "x", true);
        made.ctx.fillStyle = colour("--text");
        made.ctx.fillRect(x - 1, made.bbox.top, 2 * window.devicePixelRatio, made.bbox.height);
      }],
    },
  };
}
