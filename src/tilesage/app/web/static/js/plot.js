// uPlot (vendor/) in the colours of the page: redrawn with the theme and with its frame.
import { compact } from "./util.js";

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// `make(width, height)` gives options and data; the plot is made anew when the theme changes.
export class Plot {
  constructor(frame, options) {
    this.frame = frame;
    this.options = options;
    this.data = [[]];
    new ResizeObserver(() => this.resize()).observe(frame);
    document.addEventListener("theme", () => this.remake());
  }

  show(data) {
    this.data = data;
    if (!this.plot) this.remake(); else this.plot.setData(data);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    if (!width || !height) return;
    if (this.plot) this.plot.setSize({ width, height }); else this.remake();
  }

  remake() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    if (!width || !height) return;
    this.plot?.destroy();
    this.plot = new window.uPlot({ width, height, ...this.options() }, this.data, this.frame);
  }
}

// An axis in the page's type and colours.
export const axis = (more = {}) => ({
  stroke: colour("--muted"), font: `12px Figtree, sans-serif`, grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
  values: (_, marks) => marks.map((mark) => (mark === null ? "" : compact(mark))), ...more,
});
