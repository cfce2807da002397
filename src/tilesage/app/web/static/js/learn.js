// The Learn tab: the curves of the runs on this machine as they grow, what can be done with a run, and a form that
// starts another. Everything is asked anew again and again, so a lost connection or a restarted server loses nothing.
import { Plot, axis as axisOf } from "./plot.js";
import { $, api, compact, fill, make, number, oops, percent, segments, store, toast } from "./util.js";

const SOON = 250, LATER = 1000; // milliseconds between looks: while a curve begins, and otherwise
const AXES = [["seconds", "seconds"], ["games", "games"], ["moves", "moves"]];
const OWN = ""; // the preset that is none
const CURVES = ["#0f8a80", "#c2410c", "#6d28d9", "#b8860b", "#be185d", "#1d6fd8", "#4d7c0f", "#7c4a2d"];
const CURVES_DARK = ["#4cc4b8", "#fb923c", "#b497ff", "#e5c04b", "#f472b6", "#69b1ff", "#a3d14f", "#d6a487"];
const runs = new Map(); // name -> { points, next, told, number, chosen }
let lab = null, plot = null, timer = null, open = false;
let lines = []; // that are drawn: { name, number, points }
let game = null, metric = "mean", axis = "seconds";
let told = { runs: [], skipped: [], failed: {}, starting: [] };
let table = "", choices = "", young = false;

const form = () => $("train-form");
const curveColour = (number) => (document.documentElement.dataset.theme === "dark" ? CURVES_DARK : CURVES)[number % CURVES.length];
const gameOf = (name) => lab.games.find((known) => known.name === name) ?? lab.games[0];
const duration = (seconds) => (seconds < 120 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`);
const size = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);

export function setupLearn(laboratory) {
  lab = laboratory;
  plot = new Plot($("learn-chart"), options);
  game = store.get("learn.game", lab.games[0].name);
  metric = store.get("learn.metric", "mean");
  axis = store.get("learn.axis", "seconds");
  fill($("learn-axis"), AXES, axis);
  $("learn-axis").addEventListener("change", ({ target }) => { axis = target.value; store.set("learn.axis", axis); draw(); });
  $("learn-metric").addEventListener("change", ({ target }) => { metric = target.value; store.set("learn.metric", metric); table = ""; rows(); draw(); });
  $("learn-empty-text").replaceChildren("Start a training here, or run ", make("code", {}, "tilesage train --seconds 60 --out runs/first"), " in a terminal: its curve appears while it runs.");
  setupForm();
  document.addEventListener("theme", () => { table = ""; if (open) { rows(); draw(); } });
}

export function enterLearn() {
  if (!lab || open) return;
  open = true;
  look();
}

export function leaveLearn() {
  open = false;
  clearTimeout(timer);
}

// --- the form -----------------------------------------------------------------------------------------------------

function setupForm() {
  const { elements } = form(), { training } = lab;
  fill(elements.game, lab.games.map(({ name, title }) => [name, title]));
  fill(elements.rule, training.rules.map((name) => [name, name.toUpperCase()]));
  $("train-networks").replaceChildren(...Object.entries(training.networks).map(([name, { about }]) => make("option", { value: name, label: about })));
  elements.game.addEventListener("change", () => { presets(); prescribe(); });
  $("train-preset").addEventListener("change", prescribe);
  form().addEventListener("input", (event) => {
    if (event.target.name && !["name", "seconds", "threads", "seed", "game"].includes(event.target.name)) $("train-preset").value = OWN;
    about();
    store.set("learn.form", sent());
  });
  form().addEventListener("submit", start);
  const kept = store.get("learn.form");
  elements.game.value = kept?.game ?? game;
  if (!elements.game.value) elements.game.value = game;
  presets();
  prescribe();
  if (kept) write(kept);
  elements.name.value = freshName(kept?.name);
  about();
  if (!training.allowed) {
    for (const element of elements) element.disabled = true;
    $("train-note").textContent = "This server shows trainings but does not start them.";
  }
}

const purposes = () => lab.training.presets.filter((preset) => preset.game === form().elements.game.value);

function presets() {
  const named = purposes().map((preset, i) => [String(i), `Best in ${duration(preset.seconds)}: some ${number(preset.mean)} points`]);
  fill($("train-preset"), [...named, [OWN, "settings of your own"]], named.length ? "0" : OWN);
}

function prescribe() {
  const preset = purposes()[$("train-preset").value];
  const { game: chosen } = sent();
  if (preset) write({ ...lab.training.plain, ...preset.settings, game: chosen, seconds: preset.seconds, threads: lab.training.threads });
  else if (!form().elements.network.value) write({ ...lab.training.plain, game: chosen });
  about();
}

function write(settings) {
  for (const [name, value] of Object.entries(settings)) {
    const field = form().elements[name];
    if (!field) continue;
    if (field.type === "checkbox") field.checked = value; else field.value = value;
  }
}

function sent() {
  const fields = Object.fromEntries(new FormData(form()));
  for (const name of ["decay", "optimism", "seconds", "threads"]) fields[name] = Number(fields[name]);
  for (const name of ["by_age", "by_hint", "turned"]) fields[name] = form().elements[name].checked;
  return fields;
}

function about() {
  const preset = purposes()[$("train-preset").value], fields = sent(), known = lab.training.networks[fields.network];
  const words = [], disk = preset?.disk ?? known?.disk;
  if (preset) words.push(`Measured: ${number(preset.mean)} ± ${number(preset.error)} points without search, on ${preset.measured}.`);
  if (known) words.push(`Network ${fields.network}: ${known.about}.`);
  if (disk) words.push(`On the disk: ${disk}${!preset && (fields.stages || fields.by_hint) ? " for each set of tables" : ""}.`);
  $("train-about").textContent = words.join(" ");
}

const freshName = (name) => {
  const base = (name || `${form().elements.game.value}-1`).replace(/-?\d*$/, "") || "run";
  const taken = new Set([...runs.keys(), ...told.starting]);
  let count = 1;
  while (taken.has(`${base}-${count}`)) count += 1;
  return `${base}-${count}`;
};

async function start(event) {
  event.preventDefault();
  const fields = sent();
  $("train-start").disabled = true;
  try {
    const { name } = await api("/api/trainings", fields);
    store.set(`learn.${name}`, true);
    if (fields.game !== game) choose(fields.game);
    told.starting.push(name);
    tell(`Training ${name} started.`);
    form().elements.name.value = freshName(name);
    store.set("learn.form", sent());
    await look();
  } catch (error) { oops(error); } finally { $("train-start").disabled = false; }
}

function tell(words) {
  toast(words);
  $("learn-live").textContent = words;
}

// --- looking ------------------------------------------------------------------------------------------------------

async function look() {
  clearTimeout(timer);
  if (!document.hidden) await ask();
  if (open) timer = setTimeout(look, young ? SOON : LATER);
}

let asking = null;
const ask = () => (asking ??= asked().finally(() => { asking = null; }));

async function asked() {
  try {
    told = await api("/api/runs");
    for (const run of told.runs) {
      const known = runs.get(run.name) ?? { points: [], next: 0, number: null, chosen: store.get(`learn.${run.name}`, null) };
      runs.set(run.name, { ...known, told: run });
    }
    for (const name of [...runs.keys()]) if (!told.runs.some((run) => run.name === name)) runs.delete(name);
    if (!mine().length && runs.size && !store.get("learn.game")) game = told.runs[0].settings.game;
    chooseSome();
    await Promise.all(drawn().map(([name, run]) => follow(name, run)));
    young = told.starting.length > 0 || mine().some(([, run]) => run.told.state === "learning" && run.points.length < 20);
    $("learn-lost").hidden = true;
  } catch (error) {
    if (!/does not answer|failed/i.test(error.message)) oops(error);
    $("learn-lost").hidden = false;
  }
  heads();
  rows();
  draw();
}

async function follow(name, run) {
  const more = await api(`/api/runs/${encodeURIComponent(name)}?after=${run.next}`);
  if (more.restarted) run.points = [];
  run.points.push(...more.points);
  run.next = more.next;
}

const mine = () => [...runs].filter(([, run]) => (run.told.settings.game ?? lab.games[0].name) === game);
const drawn = () => mine().filter(([, run]) => run.chosen);

// Until somebody chooses, what is learning now and the last few runs are drawn. A colour belongs to one drawn run.
function chooseSome() {
  const all = mine();
  all.forEach(([, run], i) => { run.chosen ??= run.told.state === "learning" || i >= all.length - 4; });
  for (const [, run] of runs) if (!run.chosen) run.number = null;
  const taken = new Set(drawn().map(([, run]) => run.number));
  for (const [, run] of drawn()) {
    if (run.number !== null) continue;
    run.number = 0;
    while (taken.has(run.number)) run.number += 1;
    taken.add(run.number);
  }
}

function choose(name) {
  game = name;
  store.set("learn.game", name);
  table = choices = "";
  ask();
}

// --- what is shown ------------------------------------------------------------------------------------------------

const tile = () => (metric.startsWith("reach:") ? metric.slice(6) : String(gameOf(game).goal));

// The games that have runs, and the tiles that one of the runs has reached.
function heads() {
  const played = lab.games.filter(({ name }) => name === game || told.runs.some(({ settings }) => settings.game === name));
  const tiles = gameOf(game).tiles.filter((known) => known >= gameOf(game).goal / 4 && (known <= gameOf(game).goal * 2 || mine().some(([, run]) => run.told.last?.reach?.[known])));
  const key = JSON.stringify([played, tiles, game]);
  if (key === choices) return;
  choices = key;
  segments($("learn-games"), played.map(({ name, title }) => [name, title]), game, choose);
  fill($("learn-metric"), [["mean", "mean score"], ["max", "best score"], ...tiles.map((known) => [`reach:${known}`, `games that reach ${known}`]), ["moves_per_second", "moves a second"]], metric);
  metric = $("learn-metric").value;
}

function rows() {
  const failed = Object.entries(told.failed);
  const key = JSON.stringify([told, game, tile(), [...runs].map(([name, run]) => [name, run.chosen, run.number])]);
  if (key === table) return;
  table = key;
  const focused = document.activeElement?.closest("#learn-table") ? document.activeElement.dataset.key : null;
  $("learn-reach-name").textContent = tile();
  $("learn-table").tBodies[0].replaceChildren(...told.starting.map(starting), ...mine().map(([name, run]) => row(name, run)), ...failed.filter(([name]) => !runs.has(name)).map(failure));
  if (focused) $("learn-table").querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  $("learn-table").hidden = !$("learn-table").tBodies[0].rows.length;
  $("learn-skipped").hidden = !told.skipped.length;
  $("learn-skipped").textContent = `Not shown: ${told.skipped.map(({ name, why }) => `${name} (${why})`).join("; ")}`;
}

const cell = (content, kind = "", unit = null) => make("td", { class: kind, "data-unit": unit }, ...[content].flat());
const doing = (buttons) => make("td", {}, make("div", { class: "acts" }, ...buttons));
const act = (name, label, work, kind = "") => make("button", { class: `button small ${kind}`, type: "button", "data-key": `${label} ${name}`, "aria-label": `${label} ${name}`, onclick: work }, label);

const starting = (name) => make("tr", {}, cell(name), cell("starting; what it needs is compiled once", "state"), cell("–", "num"), cell("–", "num"), cell("", "only-wide"), doing([act(name, "Stop", () => change(name, "stop"))]));

const failure = ([name, why]) => make("tr", {}, cell(name), make("td", { class: "state bad", colspan: 4 }, why), doing([act(name, "Forget", () => remove(name))]));

function settingsOf({ settings }) {
  const switches = ["by_age", "by_hint"].filter((name) => settings[name]).map((name) => name.replace("_", " "));
  const values = ["decay", "rate", "fold", "stages", "optimism", "steps"].filter((name) => settings[name]).map((name) => `${name === "decay" ? "λ" : name} ${settings[name]}`);
  return [settings.network, settings.phases || (settings.rule ?? "").toUpperCase(), ...values, ...switches, settings.seed === undefined ? "" : `seed ${settings.seed}`].filter(Boolean).join(" · ");
}

function stateOf({ state, done, bytes }) {
  const words = { learning: "learning", stopping: "stopping: it saves all", playing: "playing games", done: "done", stopped: "stopped" }[state];
  const disk = make("span", { class: "small-line" }, `${size(bytes)} on disk`);
  if (state === "done") return [words, disk];
  const bar = make("progress", { value: done, max: 1, "aria-label": `${Math.round(100 * done)} % of its time` });
  return [state === "learning" ? make("span", { class: "live" }, `${words}, ${Math.round(100 * done)} %`) : words, bar, disk];
}

function row(name, run) {
  const { last, evaluation, state, model } = run.told;
  const box = make("input", { type: "checkbox", "data-key": `see ${name}`, "aria-label": `Draw ${name}` });
  box.checked = run.chosen;
  box.addEventListener("change", () => { run.chosen = box.checked; store.set(`learn.${name}`, box.checked); ask(); });
  const label = make("label", { class: "run-name" }, box, make("span", {}, name, make("span", { class: "run-about" }, settingsOf(run.told))));
  label.style.setProperty("--curve", run.number === null ? "var(--line-strong)" : curveColour(run.number));
  const reached = last?.reach?.[tile()] ?? (last ? 0 : null);
  const mean = [make("span", { class: "figure" }, typeof last?.mean === "number" ? number(last.mean) : "–")];
  if (evaluation) mean.push(make("span", { class: "small-line played" }, `${evaluation.agent}: ${number(evaluation.mean)} ± ${number(evaluation.stderr ?? 0)}`));
  return make("tr", {}, cell(label), cell(told.failed[name] ? [...stateOf(run.told), make("span", { class: "small-line bad" }, told.failed[name])] : stateOf(run.told), "state"),
    cell(last ? compact(last.games ?? 0) : "–", "num", "games"), cell(mean, "num", "points"),
    cell(reached === null ? "–" : percent(reached), "num only-wide"), doing(acts(name, state, model)));
}

function acts(name, state, model) {
  const found = [];
  if (model) found.push(act(name, "Watch", () => document.dispatchEvent(new CustomEvent("watch-model", { detail: { game, model: `runs/${name}` } }))));
  if (!lab.training.allowed) return found;
  if (["learning", "stopping", "playing"].includes(state)) return [...found, act(name, "Stop", () => change(name, "stop"))];
  if (model) found.push(act(name, "Evaluate", () => change(name, "evaluate", { games: 100 })));
  return [...found, act(name, "Delete", () => remove(name))];
}

const change = (name, what, fields = {}) => api(`/api/runs/${encodeURIComponent(name)}/${what}`, fields).then(() => ask(), oops);

async function remove(name) {
  const run = runs.get(name);
  if (run && !window.confirm(`Delete ${name} with all its files (${size(run.told.bytes)})? This cannot be undone.`)) return;
  try {
    const reply = await fetch(`/api/runs/${encodeURIComponent(name)}`, { method: "DELETE" });
    if (!reply.ok) throw new Error((await reply.json()).error);
    if (run) tell(`${name} is deleted.`);
    await ask();
  } catch (error) { oops(error); }
}

const share = () => metric.startsWith("reach:");
const written = (value) => (share() ? percent(value) : compact(value));

let shape = "";
function draw() {
  const value = (point) => (share() ? point.reach?.[tile()] ?? 0 : point[metric]);
  lines = drawn().map(([name, run]) => ({
    name, number: run.number,
    points: run.points.map((point) => [point[axis], value(point)]).filter(([x, y]) => typeof x === "number" && typeof y === "number"),
  })).filter(({ points }) => points.length);
  const data = lines.length ? window.uPlot.join(lines.map(({ points }) => [points.map(([x]) => x), points.map(([, y]) => y)])) : [[]];
  const key = JSON.stringify([lines.map(({ name, number: colour }) => [name, colour]), metric, axis]);
  if (key !== shape) {
    shape = key;
    plot.data = data;
    plot.remake();
  } else plot.show(data);
  $("learn-chart").dataset.points = lines.reduce((sum, { points }) => sum + points.length, 0);
  $("learn-empty").hidden = lines.length > 0;
  const said = lines.map(({ name, points }) => `${name}: ${written(points.at(-1)[1])} after ${number(points.at(-1)[0])} ${axis}`);
  $("learn-chart").setAttribute("aria-label", said.length ? `Learning curves. ${said.join("; ")}` : "No learning curve yet");
}

function options() {
  const marks = (_, values) => values.map((mark) => (mark === null ? "" : written(mark)));
  return {
    legend: { show: false }, padding: [16, 18, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: false, range: (_, low, high) => [0, high || 1] }, y: { range: (_, low, high) => [0, share() ? 1 : (high || 1) * 1.06] } },
    axes: [axisOf({ size: 26, space: 90, label: axis, labelSize: 20, labelFont: "12px Figtree, sans-serif", labelGap: 0 }), axisOf({ size: 62, values: marks })],
    series: [{}, ...lines.map(({ number: colour }) => ({
      stroke: curveColour(colour), width: 2, spanGaps: true, dash: colour >= CURVES.length ? [7, 5] : undefined, points: { show: (_, i) => lines[i - 1]?.points.length < 3, size: 6 },
    }))],
    hooks: { setCursor: [tip] },
  };
}

// What the curves say below the pointer: the last point before it.
function tip(made) {
  const { idx, left } = made.cursor, box = $("learn-tip");
  const rows = lines.map((line, i) => {
    let at = idx ?? -1;
    while (at >= 0 && typeof made.data[i + 1]?.[at] !== "number") at -= 1;
    return at < 0 ? null : make("div", {}, make("i", { "data-curve": line.number }), `${line.name}  ${written(made.data[i + 1][at])}`);
  }).filter(Boolean);
  box.hidden = left < 0 || !rows.length;
  if (box.hidden) return;
  box.replaceChildren(`${compact(made.data[0][idx])} ${axis}`, ...rows);
  for (const mark of box.querySelectorAll("i")) mark.style.background = curveColour(Number(mark.dataset.curve));
  const frame = $("learn-chart"), at = left + made.over.offsetLeft;
  const beside = at + 14 + box.offsetWidth > frame.clientWidth ? at - box.offsetWidth - 14 : at + 14;
  box.style.transform = `translate(${Math.max(4, beside)}px, 18px)`;
}
