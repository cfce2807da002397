// Starts the page: theme, the link to the server, the parts, and the tab that the address names.
import { TABS, follow, read, setupAddress } from "./address.js";
import { setupAdvice } from "./advice.js";
import { setupAnalysis } from "./analysis.js";
import { bindEditor } from "./editor.js";
import { setupFiles } from "./files.js";
import { enterLearn, leaveLearn, setupLearn } from "./learn.js";
import { KEYS, setupPlay } from "./play.js";
import { REPLAY_KEYS, setupReplay } from "./replay.js";
import { link } from "./socket.js";
import { board, setupStage, swipes } from "./stage.js";
import { now, on, set, state } from "./state.js";
import { newId } from "./kept.js";
import { move, openGame, openKept, place, touched } from "./table.js";
import { $, api, oops, toast, typing } from "./util.js";
import { WATCH_KEYS, setupWatch, watchGame } from "./watch.js";

const ARROW_KEYS = { ArrowUp: 0, ArrowRight: 1, ArrowDown: 2, ArrowLeft: 3 };
const LETTER_KEYS = { w: 0, d: 1, s: 2, a: 3, k: 0, l: 1, j: 2, h: 3 };

function theme() {
  const root = document.documentElement;
  const show = () => { $("theme-toggle").setAttribute("aria-pressed", root.dataset.theme === "dark"); document.dispatchEvent(new CustomEvent("theme")); };
  const put = (name) => { root.dataset.theme = name; show(); };
  const flip = () => {
    put(root.dataset.theme === "dark" ? "light" : "dark");
    try { localStorage.setItem("tilesage.theme", root.dataset.theme); } catch { /* private window */ }
  };
  $("theme-toggle").addEventListener("click", flip);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    let kept = null;
    try { kept = localStorage.getItem("tilesage.theme"); } catch { /* private window */ }
    if (!kept) put(event.matches ? "dark" : "light");
  });
  show();
  return flip;
}

export const openTab = (name) => set({ tab: name, node: state[name]?.at ?? null });

function tabs() {
  const list = document.querySelector("[role=tablist]");
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (!tab) return;
    openTab(tab.id.slice(4));
    if (event.detail > 0 && state.tab !== "learn") board.element.focus({ preventScroll: true });
  });
  list.addEventListener("keydown", (event) => {
    const at = TABS.indexOf(document.activeElement.id?.slice(4));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const name = TABS[(to + TABS.length) % TABS.length];
    openTab(name);
    $(`tab-${name}`).focus();
  });
  on(["tab"], () => {
    for (const tab of TABS) {
      $(`tab-${tab}`).setAttribute("aria-selected", tab === state.tab);
      $(`tab-${tab}`).tabIndex = tab === state.tab ? 0 : -1;
    }
    $("panel-board").hidden = state.tab === "learn";
    $("panel-learn").hidden = state.tab !== "learn";
    $("panel-board").setAttribute("aria-labelledby", `tab-${state.tab}`);
    document.body.dataset.tab = state.tab;
    document.title = `tilesage · ${state.tab}`;
    if (state.tab === "learn") enterLearn(); else leaveLearn();
    if (state.tab !== "learn" && state.lab) fetchModels();
    if (state.tab === "play" && !state.play && state.up) follow().catch(oops);
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    (state.tab === "learn" ? $("panel-learn") : board.element).focus();
  });
}

// One place for keys. Fields keep theirs, and a button keeps the space bar.
function keys(flip) {
  const acts = { play: KEYS, watch: WATCH_KEYS, replay: REPLAY_KEYS };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || typing(event) || state.tab === "learn" && event.key !== "t") return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "t") return flip();
    if (key === " " && event.target.closest("button, summary, input")) return;
    if (event.target.type === "range" && state.tab === "watch") return;
    const letter = state.tab === "watch" ? undefined : LETTER_KEYS[key];
    const action = state.tab === "play" ? ARROW_KEYS[key] ?? letter : letter;
    const act = action === undefined ? acts[state.tab][key] : () => move(action).catch(oops);
    if (!act || (!now() && state.tab !== "watch")) return;
    event.preventDefault();
    act();
  });
}

// A control that a pointer changed gives the keys back to the board.
function pointers() {
  let pointed = 0;
  addEventListener("pointerdown", () => { pointed = performance.now(); }, true);
  addEventListener("keydown", () => { pointed = 0; }, true);
  $("panel-board").addEventListener("change", ({ target }) => {
    if (pointed && target.matches("select, [type=checkbox], [type=range]")) board.element.focus({ preventScroll: true });
  });
  $("games").addEventListener("click", () => { if (pointed) board.element.focus({ preventScroll: true }); });
}

// A training may have made a model since the page was opened.
async function fetchModels() {
  const { models } = await api("/api/models").catch(() => state.lab);
  if (JSON.stringify(models) !== JSON.stringify(state.lab.models)) set({ lab: { ...state.lab, models } });
}

async function begin() {
  const flip = theme();
  tabs();
  link.on("link", (up) => {
    $("link-state").className = `link-state ${up ? "up" : "down"}`;
    $("link-state").lastChild.textContent = up ? "connected" : "not connected";
    set({ up });
  });
  const [games, { models }] = await Promise.all([api("/api/games"), api("/api/models")]);
  state.lab = { ...games, models };
  bindEditor();
  setupStage();
  setupPlay(watchGame);
  setupAdvice();
  setupWatch();
  setupReplay(async (...game) => { await openGame(...game); openTab("replay"); });
  setupAnalysis();
  setupFiles();
  setupLearn(state.lab);
  setupAddress();
  keys(flip);
  pointers();
  swipes((action) => { if (state.tab !== "watch") move(action).catch(oops); }, (cell) => { if (state.byHand && state.tab !== "watch") place(cell).catch(oops); });
  $("analyse").addEventListener("click", analyse);
  on(["analyse"], () => openTab("replay"));
  state.tab = "";
  set({ tab: read().tab });
  let first = true;
  link.whenOpen(() => {
    if (first) follow().catch(oops);
    first = false;
  });
  link.connect();
}

// The game of Play in Replay, at the position where it stands.
async function analyse() {
  const game = now();
  if (!game || game.nodes.length < 2) return toast("Make a move first.");
  const copy = { ...game.kept(), id: newId(), kind: "replay", title: "Your game" };
  openTab("replay");
  scrollTo(0, 0);
  await openKept(copy).then(touched, oops);
}

begin().catch((error) => toast(error.message, true));
