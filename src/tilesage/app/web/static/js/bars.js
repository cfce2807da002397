// Four bars, one a move: the expected final score of each.
import { ACTIONS, ARROWS, make, number } from "./util.js";

export class Bars {
  constructor(element) {
    this.rows = ACTIONS.map((action, i) => {
      const fill = make("div", { class: "bar-fill" });
      const value = make("span", { class: "bar-number" }, "–");
      const row = make("div", { class: "bar" },
        make("span", { class: "bar-name" }, make("i", { "aria-hidden": "true" }, ARROWS[i]), action),
        make("div", { class: "bar-track", "aria-hidden": "true" }, fill), value);
      return { row, fill, value };
    });
    element.replaceChildren(...this.rows.map(({ row }) => row));
  }

  clear() { this.show([null, null, null, null], -1); }

  // The best bar is full. The others are shorter by what they lose, on a scale of at least 5 % of the best, so that
  // moves that are nearly equal look nearly equal.
  show(values, best, legal = [0, 1, 2, 3]) {
    const known = values.filter((v) => typeof v === "number");
    const high = Math.max(...known);
    const scale = Math.max((high - Math.min(...known)) * 1.15, Math.abs(high) * 0.05, 1e-9);
    this.rows.forEach(({ row, fill, value }, action) => {
      const v = values[action];
      const told = typeof v === "number";
      const out = !legal.includes(action);
      row.classList.toggle("best", action === best);
      row.classList.toggle("out", out);
      fill.style.transform = `translateX(${told ? -100 * Math.min(0.97, (high - v) / scale) : -100}%)`;
      value.textContent = told ? number(v) : out ? "not legal" : "–";
    });
  }
}
