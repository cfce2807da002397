// A game as a tree of positions: what was played, and what was tried instead. A position is the server's line of it,
// from which the server goes on without knowing the game.
import { state } from "./state.js";
import { DIGITS, LETTERS } from "./util.js";

export const rulesOf = (game) => state.lab.games.find(({ name }) => name === game);

export class Game {
  constructor({ id, kind, game, seed = null, board = null, record = null, title = "" }, positions) {
    Object.assign(this, { id, kind, game, seed, board, record, title, ends: null });
    this.tiles = rulesOf(game).tiles;
    this.nodes = [];
    this.root = this.at = this.add(null, positions[0]);
    for (const position of positions.slice(1)) this.at = this.add(this.at, position);
    this.at = this.root;
  }

  add(parent, { line, legal, motions = "", action = null }, byHand = false) {
    const move = typeof action === "string" ? LETTERS.indexOf(action) : action;
    const node = { number: this.nodes.length, parent, line, legal, motions, action: move, byHand, children: [], next: null, opinions: {}, judged: null };
    node.ply = parent ? parent.ply + 1 : 0;
    this.nodes.push(node);
    if (parent) { parent.children.push(node); parent.next = node; }
    this.ends = null;
    return node;
  }

  get empty() { return this.nodes.length < 2 && !this.board; }

  // A move that was made before leads to where it led then.
  known(node, action) { return node.children.find((child) => child.action === action && !child.byHand); }

  // Stand on this position; it is on the path from now on.
  go(node) {
    this.at = node;
    for (let up = node; up.parent; up = up.parent) if (up.parent.next !== up) { up.parent.next = up; this.ends = null; }
    return node;
  }

  // The positions from the start, through the one on the board, to the end of what was played from there.
  path() {
    if (this.ends) return this.ends;
    const found = [];
    for (let node = this.root; node; node = node.next) found.push(node);
    this.ends = found;
    return found;
  }

  letters(nodes = this.path()) { return nodes.slice(1).map(({ action }) => LETTERS[action]).join(""); }

  // The other moves that were tried, each by its first position.
  variations() { return this.nodes.filter((node) => node.parent && node.parent.next !== node); }

  view(node = this.at) {
    if (node.view) return node.view;
    const [rows, ...words] = node.line.split(" ");
    const fields = Object.fromEntries(words.map((word) => word.split("=")));
    const cells = [...rows.replaceAll("/", "")].map((digit) => this.tiles[digit === "." ? 0 : DIGITS.indexOf(digit)]);
    const text = [rows, ...words.filter((word) => !/^(moves|rng)=/.test(word))].join(" ");
    node.view = { cells, text, score: Number(fields.score), moves: Number(fields.moves), largest: Math.max(...cells), hint: fields.hint ? fields.hint.split("+").map(Number) : null, fields, over: !node.legal.length };
    return node.view;
  }

  // What brings the game back: where it began, the moves that follow from the seed, and each other position.
  kept() {
    const main = this.path();
    const hand = main.findIndex(({ byHand }) => byHand);
    const seeded = hand < 0 ? main : main.slice(0, hand);
    const base = this.record ? this.nodes.slice(0, this.recorded) : seeded;
    const numbers = new Map(base.map((node, i) => [node, i]));
    const extra = [];
    for (const node of this.nodes) {
      if (numbers.has(node)) continue;
      numbers.set(node, numbers.size);
      extra.push([numbers.get(node.parent), node.action, node.line, node.legal.join(""), node.byHand ? 1 : 0]);
    }
    const end = this.view(main[main.length - 1]);
    const { id, kind, game, seed, board, record, title } = this;
    return { id, kind, game, seed, board, record, title, actions: this.record ? null : this.letters(base), extra, at: numbers.get(this.at), end: numbers.get(main[main.length - 1]), score: end.score, moves: end.moves, when: Date.now() };
  }

  static of(kept, positions) {
    const game = new Game(kept, positions);
    game.recorded = positions.length;
    for (const [parent, action, line, legal, byHand] of kept.extra ?? []) game.add(game.nodes[parent], { line, legal: [...legal].map(Number), action }, Boolean(byHand));
    game.go(game.nodes[kept.end] ?? game.nodes[positions.length - 1]);
    game.at = game.nodes[kept.at] ?? game.at;
    game.go(game.at);
    return game;
  }
}
