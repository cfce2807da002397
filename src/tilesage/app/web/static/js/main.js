// Starts the page: theme, tabs, the link to the server, then the four tabs.
import { bindEditor } from "./editor.js";
import { enterLearn, leaveLearn, setupLearn } from "./learn.js";
import { openPosition, setupPlay } from "./play.js";
import { openReplay, setupReplay } from "./replay.js";
import { link } from "./socket.js";
import { $, api, fill, oops, store, toast } from "./util.js";
import { enterWatch, leaveWatch, setupWatch, watchGame } from "./watch.js";

const TABS = ["play", "watch", "replay", "learn"];
let lab = null;

function theme() {
  const root = document.documentElement;
  const button = $("theme-toggle");
  const show = () => button.setAttribute("aria-pressed", root.dataset.theme === "dark");
  const flip = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("tilesage.theme", root.dataset.theme); } catch { /* private window */ }
    show();
    document.dispatchEvent(new CustomEvent("theme"));
  };
  button.addEventListener("click", flip);
  document.addEventListener("keydown", (event) => {
    if (event.key === "t" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, textarea, select, dialog")) flip();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    let kept = null;
    try { kept = localStorage.getItem("tilesage.theme"); } catch { /* private window */ }
    if (kept) return;
    root.dataset.theme = event.matches ? "dark" : "light";
    show();
    document.dispatchEvent(new CustomEvent("theme"));
  });
  show();
}

export function openTab(name, focus = true) {
  for (const tab of TABS) {
    const on = tab === name;
    $(`tab-${tab}`).setAttribute("aria-selected", on);
    $(`tab-${tab}`).tabIndex = on ? 0 : -1;
    $(`panel-${tab}`).hidden = !on;
  }
  history.replaceState(null, "", `#${name}`);
  document.title = `tilesage · ${name}`;
  if (name !== "watch") leaveWatch();
  if (name === "learn") enterLearn(); else leaveLearn();
  if (name === "watch") enterWatch();
  if (name !== "learn" && lab) fetchModels();
  if (focus) $(`${name}-board`)?.focus({ preventScroll: true });
}

function tabs() {
  const list = document.querySelector("[role=tablist]");
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) openTab(tab.id.slice(4), event.detail > 0);
  });
  list.addEventListener("keydown", (event) => {
    const at = TABS.indexOf(document.activeElement.id?.slice(4));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const name = TABS[(to + TABS.length) % TABS.length];
    openTab(name, false);
    $(`tab-${name}`).focus();
  });
}

const OTHER = "…"; // the last choice of agent: one that is written in

function players(prefix, game) {
  const models = lab.models.filter((model) => model.game === game);
  const kept = store.get(`${prefix}.agent`, models.length ? lab.agents[0].spec : "mcts:400");
  const menu = lab.agents.map(({ spec, title }) => [spec, title]);
  if (!menu.some(([spec]) => spec === kept)) menu.unshift([kept, kept]);
  fill($(`${prefix}-agent`), [...menu, [OTHER, "another…"]], kept);
  $(`${prefix}-model`).disabled = !readsModel(kept);
  fill($(`${prefix}-model`), models.length ? models.map(({ name, title }) => [name, title]) : [["", "none found"]], store.get(`${prefix}.model`));
}

const readsModel = (agent) => lab.agents.find(({ spec }) => spec === agent)?.model ?? true;

// Before the tabs hear of a choice: an agent of one's own is asked for, and what was chosen is remembered.
function keepPlayers(prefix) {
  $(`${prefix}-agent`).addEventListener("change", (event) => {
    const kept = store.get(`${prefix}.agent`, lab.agents[0].spec);
    const choice = event.target.value === OTHER ? window.prompt("Which agent? Such as expectimax:500ms, mcts:2000 or rollouts:50", kept) : event.target.value;
    store.set(`${prefix}.agent`, choice?.trim() || kept);
    if (event.target.value === OTHER) document.dispatchEvent(new CustomEvent("models"));
    $(`${prefix}-model`).disabled = !readsModel(event.target.value);
  }, { capture: true });
  $(`${prefix}-model`).addEventListener("change", (event) => store.set(`${prefix}.model`, event.target.value), { capture: true });
}

// A training may have made a model since the page was opened.
async function fetchModels() {
  const { models } = await api("/api/models").catch(() => lab);
  if (JSON.stringify(models) === JSON.stringify(lab.models)) return;
  lab.models = models;
  document.dispatchEvent(new CustomEvent("models"));
}

function fromHash() {
  const [name, query] = location.hash.slice(1).split("?");
  const fields = new URLSearchParams(query ?? "");
  const share = fields.has("board") ? { game: fields.get("game"), board: fields.get("board") } : null;
  return { tab: TABS.includes(name) ? name : "play", share };
}

async function begin() {
  theme();
  tabs();
  bindEditor();
  const { tab, share } = fromHash();
  link.on("link", (up) => {
    $("link-state").className = `link-state ${up ? "up" : "down"}`;
    $("link-state").lastChild.textContent = up ? "connected" : "not connected";
  });
  const [games, { models }] = await Promise.all([api("/api/games"), api("/api/models")]);
  lab = { ...games, models };
  const refresh = () => {
    players("play", document.querySelector("#play-games [aria-checked=true]")?.dataset.value ?? lab.games[0].name);
    players("watch", watchGame());
    players("replay", document.body.dataset.replayGame ?? store.get("play.game", lab.games[0].name));
  };
  for (const prefix of ["play", "watch", "replay"]) keepPlayers(prefix);
  document.addEventListener("models", refresh);
  setupReplay(lab);
  setupWatch(lab);
  setupLearn(lab);
  setupPlay(lab, share);
  refresh();
  $("play-games").addEventListener("click", refresh);
  $("play-games").addEventListener("keyup", refresh);
  document.addEventListener("replay", async ({ detail }) => {
    openTab("replay");
    await openReplay(detail).catch(oops);
  });
  document.addEventListener("play-on", async ({ detail }) => {
    openTab("play");
    await openPosition(detail.game, detail.text).catch(oops);
  });
  window.addEventListener("hashchange", () => {
    const next = fromHash();
    openTab(next.tab);
    if (next.share) openPosition(next.share.game ?? lab.games[0].name, next.share.board).catch(oops);
  });
  openTab(tab);
  link.whenOpen(() => { if (!$("panel-watch").hidden) enterWatch(); });
  link.connect();
}

begin().catch((error) => toast(error.message, true));
