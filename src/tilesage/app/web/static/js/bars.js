// Four bars, one a move: what the best is worth, and what the others give away against it. A click plays the move.
import { ACTIONS, ARROWS, make, number } from "./util.js";

export class Bars {
  constructor(element, onPlay) {
    this.element = element;
    this.rows = ACTIONS.map((action, i) => {
      const fill = make("div", { class: "bar-fill" });
      const value = make("span", { class: "bar-number" }, "–");
      const row = make("button", { type: "button", class: "bar", onclick: () => onPlay(i) },
        make("span", { class: "bar-name" }, make("i", { "aria-hidden": "true" }, ARROWS[i]), action),
        make("span", { class: "bar-track", "aria-hidden": "true" }, fill), value);
      return { row, fill, value };
    });
    element.replaceChildren(...this.rows.map(({ row }) => row));
  }

  // The best bar is full. The others are shorter by what they lose, on a scale of at least 5 % of the best, so that
  // moves that are nearly equal look nearly equal. `still`: no bar moves slowly, because another is on its way.
  show(opinion, legal = [0, 1, 2, 3], still = false) {
    const { values = [], losses = [], best = -1 } = opinion ?? {};
    const worst = Math.max(0, ...losses.filter((loss) => typeof loss === "number"));
    const scale = Math.max(worst * 1.15, Math.abs(values[best] ?? 0) * 0.05, 1e-9);
    this.element.classList.toggle("still", still);
    this.rows.forEach(({ row, fill, value }, action) => {
      const told = typeof values[action] === "number";
      const out = !legal.includes(action);
      row.classList.toggle("best", action === best);
      row.disabled = out;
      fill.style.transform = `translateX(${told ? -100 * Math.min(0.97, losses[action] / scale) : -100}%)`;
      value.textContent = out ? "not legal" : !told ? "–" : action === best ? number(values[action]) : losses[action] < 0.5 ? "the same" : `−${number(losses[action])}`;
      row.title = told ? `${ACTIONS[action]}: ${number(values[action])}` : "";
    });
  }
}
