// The address names the tab, the game and the position: #play?id=k3f9&at=12, so that a reload, Back and Forward, and
// a bookmark lead there. A link from elsewhere brings its game along.
import { unpack } from "./files.js";
import { keptGame } from "./kept.js";
import { link } from "./socket.js";
import { now, on, set, state } from "./state.js";
import { go, openGame, openKept, openNew, resume } from "./table.js";
import { firstGame } from "./play.js";
import { oops } from "./util.js";

export const TABS = ["play", "watch", "replay", "learn"];
let quiet = false; // while an address is being followed
let later = 0;
let reloaded = performance.getEntriesByType("navigation")[0]?.type === "reload"; // what was kept is newer than the address

export function read() {
  const [name, query] = location.hash.slice(1).split("?");
  return { tab: TABS.includes(name) ? name : "play", fields: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

function text() {
  const game = now();
  if (!game || state.tab === "watch" || state.tab === "learn") return `#${state.tab}`;
  return `#${state.tab}?id=${game.id}&at=${game.at.ply}`;
}

// A new tab or game is a step that Back takes back; another position is not.
function write(step) {
  if (quiet || !state.lab) return;
  clearTimeout(later);
  const put = () => { if (text() !== location.hash) history[step ? "pushState" : "replaceState"](null, "", text()); };
  if (step) put(); else later = setTimeout(put, 250);
}

export function setupAddress() {
  let before = "";
  on(["tab", "game", "node"], () => {
    const where = `${state.tab} ${now()?.id ?? ""}`;
    write(where !== before && before !== "" && before.split(" ")[1] !== undefined && !firstGameOf(before, where));
    before = where;
  });
  window.addEventListener("popstate", () => follow().catch(oops));
}

// A tab that gets its first game is no step.
const firstGameOf = (before, where) => before.split(" ")[0] === where.split(" ")[0] && before.split(" ")[1] === "";

export async function follow() {
  const { tab, fields } = read();
  quiet = true;
  try {
    set({ tab, node: state[tab]?.at ?? null });
    if (tab === "watch" || tab === "learn") return;
    if (fields.board && fields.a === undefined) await openNew(tab === "replay" ? "play" : tab, { game: fields.game ?? firstGame("play"), board: fields.board });
    else if (fields.a !== undefined) await openGame({ game: fields.game, seed: fields.seed, board: fields.board ?? null, actions: unpack(fields.a) }, "A shared game", Number(fields.at));
    else if (fields.id && fields.id !== state[tab]?.id && keptGame(fields.id)) await openKept(keptGame(fields.id));
    else if (!state[tab] && tab === "play" && link.open) await resume("play", firstGame("play"));
    else if (!state[tab] && tab === "replay" && fields.id) return;
    const game = state[tab];
    if (game && fields.at !== undefined && fields.a === undefined && !reloaded) { const path = game.path(); go(path[Math.min(path.length - 1, Number(fields.at) || 0)]); }
  } finally {
    reloaded = quiet = false;
    history.replaceState(null, "", text());
  }
}
