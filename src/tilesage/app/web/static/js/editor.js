// The dialog in which a board is set up or pasted.
import { link } from "./socket.js";
import { $, make } from "./util.js";

let use = null;
let tiles = [];
let game = "";
let tail = [];

export function openEditor(lab, position, onUse) {
  use = onUse;
  game = position.game;
  tiles = lab.games.find(({ name }) => name === game).tiles;
  tail = position.text.split(" ").slice(1).filter((word) => !word.startsWith("score=")); // hint, bag or deck
  $("editor-grid").dataset.palette = game;
  $("editor-grid").replaceChildren(...position.cells.map((tile, cell) => cellInput(tile, cell)));
  $("editor-text").value = position.text;
  $("editor-error").textContent = "";
  $("editor").showModal();
}

function cellInput(tile, cell) {
  const input = make("input", {
    inputmode: "numeric", autocomplete: "off", maxlength: 6, "aria-label": `row ${1 + Math.floor(cell / 4)}, column ${1 + (cell % 4)}`,
    oninput: () => { dress(input); write(); },
    onclick: (event) => step(input, event.shiftKey ? -1 : 1),
    oncontextmenu: (event) => { event.preventDefault(); step(input, -1); },
    onkeydown: (event) => {
      const move = { ArrowUp: -4, ArrowDown: 4, ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move) { event.preventDefault(); $("editor-grid").children[cell + move]?.focus(); }
      else if (event.key === " ") { event.preventDefault(); step(input, event.shiftKey ? -1 : 1); }
    },
  });
  input.value = tile || "";
  dress(input);
  return input;
}

function step(input, by) {
  const at = Math.max(0, tiles.indexOf(Number(input.value || 0)));
  const next = tiles[(at + by + tiles.length) % tiles.length];
  input.value = next || "";
  dress(input);
  write();
}

const dress = (input) => { if (Number(input.value)) input.dataset.tile = Number(input.value); else delete input.dataset.tile; };

function write() {
  $("editor-text").value = [...$("editor-grid").children].map((input) => input.value || "0").concat(tail).join(" ");
  $("editor-error").textContent = "";
}

export function bindEditor() {
  $("editor-clear").addEventListener("click", () => {
    for (const input of $("editor-grid").children) { input.value = ""; dress(input); }
    write();
  });
  let later = 0;
  $("editor-text").addEventListener("input", () => { clearTimeout(later); later = setTimeout(read, 150); });
  const read = async () => {
    try {
      const { cells } = await link.ask("play.read", { game, board: $("editor-text").value });
      [...$("editor-grid").children].forEach((input, cell) => { input.value = cells[cell] || ""; dress(input); });
      $("editor-error").textContent = "";
    } catch (error) { $("editor-error").textContent = error.message; }
  };
  $("editor-use").addEventListener("click", async (event) => {
    event.preventDefault();
    try {
      await use($("editor-text").value);
      $("editor").close();
    } catch (error) { $("editor-error").textContent = error.message; }
  });
}
