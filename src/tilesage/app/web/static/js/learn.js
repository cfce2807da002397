// The Learn tab: the curves of the runs on this machine, as they grow, and a form that starts another.
import { Chart, curveColour } from "./chart.js";
import { $, api, compact, fill, make, number, oops, percent, segments, store, toast } from "./util.js";

const EVERY = 1000; // milliseconds between looks
const METRICS = [["mean", "Mean score"], ["max", "Best score"], ["reach", "Goal tile"], ["moves_per_second", "Moves/s"]];
const AXES = [["games", "games"], ["moves", "moves"], ["seconds", "seconds"]];
const runs = new Map(); // name -> { points, next, told, colour, chosen }
let lab = null;
let chart = null;
let metric = "mean";
let axis = "games";
let timer = null;
let looking = false;
let table = "";

export function setupLearn(laboratory) {
  lab = laboratory;
  chart = new Chart($("learn-chart"), $("learn-tip"));
  segments($("learn-metric"), METRICS, metric, (value) => { metric = value; draw(); });
  segments($("learn-axis"), AXES, axis, (value) => { axis = value; draw(); });
  const form = $("train-form");
  fill(form.elements.game, lab.games.map(({ name, title }) => [name, title]));
  fill(form.elements.network, Object.keys(lab.training.networks).map((name) => [name, name]));
  const about = () => { $("train-note").textContent = `${form.elements.network.value}: ${lab.training.networks[form.elements.network.value]}.`; };
  form.elements.network.addEventListener("change", about);
  about();
  fill(form.elements.rule, lab.training.rules.map((name) => [name, name.toUpperCase()]));
  form.elements.name.value = freshName();
  form.addEventListener("submit", start);
  if (!lab.training.allowed) {
    for (const element of form.elements) element.disabled = true;
    $("train-note").textContent = "This server shows trainings but does not start them.";
  }
  document.addEventListener("theme", () => { table = ""; draw(); });
}

export function enterLearn() {
  if (!lab || timer) return;
  look();
  timer = setInterval(look, EVERY);
}

export function leaveLearn() {
  clearInterval(timer);
  timer = null;
}

const freshName = () => `page-${new Date().toISOString().slice(5, 16).replace(/[-:T]/g, "")}`;

async function start(event) {
  event.preventDefault();
  const form = event.target;
  const fields = Object.fromEntries(new FormData(form));
  for (const name of ["decay", "seconds", "threads", "seed"]) fields[name] = Number(fields[name]);
  $("train-start").disabled = true;
  try {
    const { name } = await api("/api/trainings", fields);
    store.set(`learn.${name}`, true);
    toast(`Training ${name} started.`);
    $("learn-live").textContent = `Training ${name} started.`;
    form.elements.name.value = `${name.replace(/-\d+$/, "")}-${1 + Number(/-(\d+)$/.exec(name)?.[1] ?? 1)}`;
    look();
  } catch (error) { oops(error); } finally { $("train-start").disabled = false; }
}

async function look() {
  if (looking || document.hidden) return;
  looking = true;
  try {
    const told = await api("/api/runs");
    told.runs.forEach((run, i) => {
      const known = runs.get(run.name) ?? { points: [], next: 0, chosen: store.get(`learn.${run.name}`, i < 4 || told.runs.length - i <= 4) };
      runs.set(run.name, { ...known, told: run, number: known.number ?? runs.size });
    });
    for (const name of [...runs.keys()]) if (!told.runs.some((run) => run.name === name)) runs.delete(name);
    for (const [name, error] of Object.entries(told.failed)) fail(name, error);
    await Promise.all([...runs].filter(([, run]) => run.chosen).map(([name, run]) => follow(name, run)));
    rows(told);
    draw();
  } catch (error) { oops(error); } finally { looking = false; }
}

const failures = new Set();
function fail(name, error) {
  if (failures.has(name + error)) return;
  failures.add(name + error);
  toast(`${name}: ${error}`, true);
}

async function follow(name, run) {
  const more = await api(`/api/runs/${encodeURIComponent(name)}?after=${run.next}`);
  if (more.restarted) run.points = [];
  run.points.push(...more.points);
  run.next = more.next;
}

const goal = (run) => String((lab.games.find(({ name }) => name === run.told.settings.game) ?? lab.games[0]).goal);
const reached = (run, point) => point?.reach?.[goal(run)];

function value(run, point) {
  const found = metric === "reach" ? reached(run, point) : point[metric];
  return typeof found === "number" ? found : null;
}

function rows(told) {
  const key = JSON.stringify([told, [...runs].map(([name, run]) => [name, run.chosen])]);
  if (key === table) return;
  table = key;
  const focused = document.activeElement?.closest("#learn-table") ? document.activeElement.dataset.key : null;
  $("learn-table").tBodies[0].replaceChildren(...[...runs].map(([name, run]) => row(name, run, told)));
  if (focused) $("learn-table").querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  $("learn-table").hidden = !runs.size;
}

function row(name, run, told) {
  const { settings, last, state } = run.told;
  const alive = state === "learning" || state === "stopping" || state === "playing";
  const box = make("input", { type: "checkbox", "data-key": `see ${name}`, "aria-label": `Draw ${name}` });
  box.checked = run.chosen;
  box.addEventListener("change", () => { run.chosen = box.checked; store.set(`learn.${name}`, box.checked); draw(); look(); });
  const label = make("label", { class: "run-name" }, box, make("span", {}, name));
  label.style.setProperty("--curve", curveColour(run.number));
  const about = [settings.game, settings.network, settings.rule && String(settings.rule).toUpperCase()].filter(Boolean).join(" · ");
  const reach = reached(run, last);
  const stop = alive && lab.training.allowed
    ? make("button", { class: "button small", "data-key": `stop ${name}`, "aria-label": `Stop ${name}`, onclick: () => api(`/api/runs/${encodeURIComponent(name)}/stop`, {}).then(look, oops) }, state === "stopping" ? "Stopping" : "Stop")
    : alive ? make("span", { class: "live" }, state) : "";
  const cell = (text, kind = "num") => make("td", { class: kind }, text);
  return make("tr", {}, cell(label, ""), cell(about, "settings only-wide"), cell(last ? compact(last.games ?? 0) : "–"),
    cell(last && typeof last.mean === "number" ? number(last.mean) : "–"), cell(typeof reach === "number" ? percent(reach) : "–"),
    cell(last ? compact(last.moves_per_second ?? 0) : "–", "num only-wide"), cell(stop, "num"));
}

function draw() {
  const lines = [...runs].filter(([, run]) => run.chosen).map(([name, run]) => ({
    name, colour: curveColour(run.number),
    points: run.points.map((point) => [point[axis], value(run, point)]).filter(([x, y]) => typeof x === "number" && y !== null),
  })).filter(({ points }) => points.length);
  const share = metric === "reach";
  chart.show(lines, { y: share ? (v) => `${Math.round(100 * v)} %` : compact, x: compact, xName: axis, top: share ? 1 : undefined });
  $("learn-empty").hidden = lines.length > 0;
  const said = lines.map(({ name, points }) => `${name}: ${share ? percent(points.at(-1)[1]) : number(points.at(-1)[1])} after ${number(points.at(-1)[0])} ${axis}`);
  $("learn-chart").setAttribute("aria-label", said.length ? `Learning curves. ${said.join("; ")}` : "No learning curve yet");
}
