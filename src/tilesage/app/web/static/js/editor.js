// The dialog in which a board is set up or pasted. Choose a tile, then the cells for it; or type into a cell.
import { rulesOf } from "./game.js";
import { link } from "./socket.js";
import { $, make } from "./util.js";

let use = null;
let rules = null;
let brush = 0;
let score = "";

export function openEditor(game, view, onUse) {
  use = onUse;
  rules = rulesOf(game);
  score = view.fields.score ?? "";
  for (const id of ["editor-grid", "editor-palette"]) $(id).dataset.palette = game;
  $("editor-grid").replaceChildren(...view.cells.map((tile, cell) => cellInput(tile, cell)));
  $("editor-palette").replaceChildren(...rules.tiles.map((tile) => make("button", { type: "button", class: "mini", "data-tile": tile || null, "aria-label": tile ? `tile ${tile}` : "no tile", onclick: () => take(tile) }, tile ? String(tile) : "∅")));
  take(rules.tiles[1]);
  choices(view.fields);
  $("editor-error").textContent = "";
  write();
  $("editor").showModal();
}

function take(tile) {
  brush = tile;
  for (const button of $("editor-palette").children) button.setAttribute("aria-pressed", Number(button.dataset.tile ?? 0) === tile);
}

function cellInput(tile, cell) {
  const input = make("input", {
    inputmode: "none", autocomplete: "off", maxlength: 7, "aria-label": `row ${1 + Math.floor(cell / 4)}, column ${1 + (cell % 4)}`,
    oninput: () => { dress(input); write(); },
    onpointerdown: () => { input.dataset.clicked = "yes"; },
    onclick: () => { if (!input.dataset.clicked) return; delete input.dataset.clicked; paint(input, Number(input.value) === brush ? 0 : brush); },
    onkeydown: (event) => {
      const move = { ArrowUp: -4, ArrowDown: 4, ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move) { event.preventDefault(); $("editor-grid").children[cell + move]?.focus(); $("editor-grid").children[cell + move]?.select(); }
      else if (event.key === " ") { event.preventDefault(); paint(input, Number(input.value) === brush ? 0 : brush); }
      else if (event.key === "+" || event.key === "-") { event.preventDefault(); paint(input, rules.tiles[(rules.tiles.indexOf(Number(input.value || 0)) + (event.key === "+" ? 1 : rules.tiles.length - 1)) % rules.tiles.length]); }
    },
  });
  input.value = tile || "";
  dress(input);
  return input;
}

function paint(input, tile) {
  input.value = tile || "";
  dress(input);
  write();
}

const dress = (input) => { if (Number(input.value)) input.dataset.tile = Number(input.value); else delete input.dataset.tile; };

// What comes next, as the game's hint allows, and what is left in the bag or the deck.
function choices(fields) {
  const { hint } = rules;
  $("editor-next").hidden = !hint;
  if (!hint) return $("editor-next").replaceChildren();
  const windows = [];
  for (let size = 1; size <= hint.values && hint.values > 1; size++) for (let i = 4; i + size <= rules.tiles.length; i++) windows.push(rules.tiles.slice(i, i + size).join("+"));
  const bags = ["1", "2", "3", "12", "13", "23", "123"];
  const counts = Array.from({ length: hint.copies + 1 }, (_, i) => String(i));
  const deck = (fields.deck ?? "").split(",");
  $("editor-next").replaceChildren(select("hint", "Next tile", ["1", "2", "3", ...windows], fields.hint),
    ...(hint.copies === 1 ? [select("bag", "Left in the bag", bags, fields.bag)] : hint.copies > 1 ? [1, 2, 3].map((tile, i) => select("deck", `${tile}s in the deck`, counts, deck[i])) : []));
}

function select(name, label, options, chosen) {
  const box = make("select", { "data-field": name, onchange: write }, ...options.map((option) => make("option", { value: option, selected: option === chosen }, option.split("").join(option.length > 1 && name === "bag" ? ", " : ""))));
  return make("label", { class: "field" }, label, box);
}

function write() {
  const words = [...$("editor-grid").children].map((input) => input.value || "0");
  const of = (name) => [...$("editor-next").querySelectorAll(`[data-field=${name}]`)].map(({ value }) => value).join(",");
  for (const name of ["hint", "bag", "deck"]) if (of(name)) words.push(`${name}=${of(name)}`);
  if (score && !rules.scoreIsValue) words.push(`score=${score}`);
  $("editor-text").value = words.join(" ");
  $("editor-error").textContent = "";
}

export function bindEditor() {
  $("editor-clear").addEventListener("click", () => {
    score = "";
    for (const input of $("editor-grid").children) { input.value = ""; dress(input); }
    write();
  });
  let later = 0;
  $("editor-text").addEventListener("input", () => { clearTimeout(later); later = setTimeout(read, 150); });
  $("editor").addEventListener("click", ({ target }) => { if (target.value === "cancel") $("editor").close(); });
  $("editor-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(later);
    try {
      await use($("editor-text").value);
      $("editor").close();
      $("board").focus({ preventScroll: true });
    } catch (error) { $("editor-error").textContent = error.message; }
  });
  $("editor-text").addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); $("editor-form").requestSubmit(); } });
}

async function read() {
  try {
    const { cells, line } = await link.ask("game.read", { game: rules.name, board: $("editor-text").value });
    [...$("editor-grid").children].forEach((input, cell) => { input.value = cells[cell] || ""; dress(input); });
    const fields = Object.fromEntries(line.split(" ").slice(1).map((word) => word.split("=")));
    choices(fields);
    score = fields.score ?? "";
    $("editor-error").textContent = "";
  } catch (error) { $("editor-error").textContent = error.message; }
}
