// The Play tab: a game of one's own. The arrow keys move, U goes back and Y forth; another move than before is a
// variation, so that nothing is lost.
import { ask } from "./advice.js";
import { openEditor } from "./editor.js";
import { rulesOf } from "./game.js";
import { keptGames } from "./kept.js";
import { board, say } from "./stage.js";
import { now, on, set, state } from "./state.js";
import { back, forth, openKept, openNew, resume } from "./table.js";
import { $, make, number, oops, seedOf, segments, store, toast } from "./util.js";

let choose = () => {};

export const fresh = (fields = {}) => openNew("play", { game: state.play?.game ?? firstGame("play"), ...fields }).then(() => board.element.focus({ preventScroll: true }), oops);

export function firstGame(tab) {
  const kept = store.get(`${tab}.game`);
  return state.lab.games.some(({ name }) => name === kept) ? kept : state.lab.games[0].name;
}

export function setupPlay(chooseWatched) {
  const press = (id, act) => $(id).addEventListener("click", act);
  choose = segments($("games"), state.lab.games.map(({ name, title }) => [name, title]), firstGame("play"), (name) => {
    if (state.tab === "watch") chooseWatched(name); else resume("play", name).catch(oops);
  });
  press("undo", undo);
  press("undo-over", undo);
  press("redo", () => forth());
  press("restart", () => fresh());
  press("again", () => fresh());
  press("edit", () => openEditor(state.play.game, state.play.view(), (text) => openNew("play", { game: state.play.game, board: text })));
  $("seed-form").addEventListener("submit", (event) => {
    event.preventDefault();
    try { fresh({ seed: seedOf($("seed")) ?? undefined }); } catch (error) { oops(error); }
  });
  $("by-hand").addEventListener("change", ({ target }) => {
    set({ byHand: target.checked });
    if (target.checked) toast("Make a move, then click the cell for the new tile; click it again for another tile.");
  });
  $("before").addEventListener("change", ({ target }) => {
    const kept = keptGames("play").find(({ id }) => id === target.value);
    target.value = "";
    if (kept) openKept(kept).then(() => board.element.focus({ preventScroll: true }), oops);
  });
  on(["node", "game", "tab"], () => {
    const game = now();
    if (state.tab === "learn") return;
    const name = game?.game ?? firstGame(state.tab === "replay" ? "play" : state.tab);
    choose(name);
    $("undo").disabled = !game?.at?.parent;
    $("redo").disabled = !game?.at?.next;
    if (document.activeElement !== $("seed") && state.tab === "play") $("seed").value = game?.seed ?? "";
  });
  on(["game", "tab"], earlier);
}

// The games before, to be brought back.
function earlier() {
  const found = keptGames("play").filter(({ id }) => id !== state.play?.id);
  const when = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
  $("before").replaceChildren(make("option", { value: "" }, found.length ? "Games before …" : "No games before"), ...found.map((kept) =>
    make("option", { value: kept.id }, `${rulesOf(kept.game)?.title ?? kept.game} · ${number(kept.score)} · ${number(kept.moves)} moves · ${when.format(kept.when)}`)));
  $("before").disabled = !found.length;
}

export function undo() {
  if (!state.play?.at.parent) return;
  back().then(() => say(`Undone. Score ${state.play.view().score}.`), oops);
}

export const KEYS = { u: undo, Backspace: undo, y: () => forth(), n: () => fresh(), e: ask, "?": ask };
