// The board on the screen. The server says which tile went where; this only moves, pops and shows tiles.
import { ARROWS, ACTIONS, compact, make } from "./util.js";

const SLIDE_MS = 105;

export class Board {
  constructor(element) {
    this.element = element;
    this.tiles = new Map(); // cell -> element
    this.cells = new Array(16).fill(0);
    this.pending = null;
    element.replaceChildren(...this.cells.map((_, cell) => place(make("div", { class: "cell", "data-cell": cell }), cell)));
    this.chips = ACTIONS.map((action) => make("span", { class: `chip ${action}`, hidden: true }));
    this.arrow = make("span", { class: "arrow", hidden: true });
    const advice = make("div", { class: "board-advice", "aria-hidden": "true" }, this.arrow, ...this.chips);
    element.after(advice);
  }

  set game(name) { this.element.dataset.palette = name; }

  // The best move as an arrow, and at each other side what a move there gives away; nothing without an opinion.
  advise(opinion, legal = []) {
    const { best = -1, losses = [] } = opinion ?? {};
    this.arrow.hidden = best < 0;
    this.arrow.dataset.action = ACTIONS[best] ?? "";
    this.chips.forEach((chip, action) => {
      const loss = losses[action];
      chip.hidden = !legal.includes(action) || (action !== best && typeof loss !== "number");
      chip.classList.toggle("best", action === best);
      chip.textContent = action === best ? ARROWS[action] : loss < 0.5 ? "±0" : `−${compact(loss)}`;
    });
  }

  // Show a position at once, reusing what is there.
  show(cells) {
    this.finish();
    for (let cell = 0; cell < 16; cell++) {
      const tile = this.tiles.get(cell);
      if (cells[cell] === this.cells[cell] && (tile || !cells[cell])) continue;
      if (!cells[cell]) { tile?.remove(); this.tiles.delete(cell); }
      else if (tile) dress(tile, cells[cell]);
      else this.add(cell, cells[cell]);
    }
    this.cells = [...cells];
  }

  // Animate one move: motions is a string of pairs of hex cells, "from to from to …", one for each tile.
  move(cells, motions) {
    this.finish();
    if (!motions) return this.show(cells);
    const arriving = new Map();
    for (let i = 0; i < motions.length; i += 2) {
      const from = parseInt(motions[i], 16);
      const to = parseInt(motions[i + 1], 16);
      const tile = this.tiles.get(from);
      if (!tile) return this.show(cells);
      arriving.set(to, [...(arriving.get(to) ?? []), [tile, from !== to]]);
    }
    const next = new Map();
    for (const [cell, tiles] of arriving) {
      for (const [tile, moves] of tiles) {
        tile.classList.remove("pop", "appear");
        if (moves) { tile.classList.add("moving"); place(tile, cell); }
        if (tiles.length > 1 && !moves) tile.classList.add("under");
      }
      if (tiles.length === 1) next.set(cell, tiles[0][0]);
    }
    this.tiles = next;
    this.cells = [...cells];
    const settle = () => {
      for (const [cell, tiles] of arriving) {
        for (const [tile] of tiles) {
          tile.classList.remove("moving", "under");
          if (tiles.length > 1) tile.remove();
        }
        if (tiles.length > 1) this.add(cell, cells[cell], "pop");
      }
      for (let cell = 0; cell < 16; cell++) if (cells[cell] && !this.tiles.has(cell)) this.add(cell, cells[cell], "appear");
    };
    this.pending = { settle, timer: setTimeout(() => this.finish(), SLIDE_MS) };
  }

  finish() {
    if (!this.pending) return;
    const { settle, timer } = this.pending;
    this.pending = null;
    clearTimeout(timer);
    settle();
  }

  add(cell, value, how = "") {
    const tile = make("div", { class: `tile ${how}`.trim() }, make("div", { class: "face" }));
    dress(place(tile, cell), value);
    this.tiles.set(cell, tile);
    this.element.append(tile);
  }
}

function place(element, cell) {
  element.style.setProperty("--x", cell % 4);
  element.style.setProperty("--y", Math.floor(cell / 4));
  return element;
}

function dress(tile, value) {
  tile.dataset.tile = value;
  tile.dataset.digits = String(value).length;
  tile.firstChild.textContent = value;
}

// The same position as a table, for those who do not see the board.
export function describe(table, cells) {
  table.replaceChildren(make("tbody", {}, ...[0, 4, 8, 12].map((row) =>
    make("tr", {}, ...cells.slice(row, row + 4).map((tile) => make("td", {}, tile ? String(tile) : "empty"))))));
}
