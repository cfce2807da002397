// Line charts on a canvas: axes with round numbers, one line a run, a crosshair. Nothing else.
import { compact } from "./util.js";

export const CURVES = ["#0f8a80", "#c2410c", "#6d28d9", "#b8860b", "#be185d", "#1d6fd8", "#4d7c0f", "#7c4a2d"];
export const CURVES_DARK = ["#4cc4b8", "#fb923c", "#b497ff", "#e5c04b", "#f472b6", "#69b1ff", "#a3d14f", "#d6a487"];

export const curveColour = (i) => (document.documentElement.dataset.theme === "dark" ? CURVES_DARK : CURVES)[i % CURVES.length];

function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const magnitude = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * magnitude).find((s) => s >= raw) ?? raw;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return found;
}

export class Chart {
  constructor(canvas, tip) {
    this.canvas = canvas;
    this.tip = tip;
    this.lines = [];
    this.options = { y: compact, x: compact, xName: "" };
    this.pointer = null;
    this.waiting = false;
    new ResizeObserver(() => this.later()).observe(canvas);
    canvas.addEventListener("pointermove", (event) => { this.pointer = [event.offsetX, event.offsetY]; this.later(); });
    canvas.addEventListener("pointerleave", () => { this.pointer = null; this.later(); });
    document.addEventListener("theme", () => this.later());
  }

  // lines: [{ name, colour, points: [[x, y], …] }]
  show(lines, options) {
    this.lines = lines;
    this.options = { ...this.options, ...options };
    this.later();
  }

  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  frame(width, height) {
    const most = (axis) => this.lines.reduce((top, { points }) => points.reduce((high, point) => Math.max(high, point[axis]), top), 0) || 1;
    const high = this.options.top ?? most(1);
    const box = { left: 58, right: width - 20, top: 22, bottom: height - 40 };
    const right = most(0);
    return {
      ...box, high: high * (this.options.top ? 1 : 1.06), end: right,
      x: (value) => box.left + (value / right) * (box.right - box.left),
      y: (value) => box.bottom - (value / (high * (this.options.top ? 1 : 1.06))) * (box.bottom - box.top),
    };
  }

  draw() {
    const { canvas } = this;
    const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    canvas.dataset.points = this.lines.reduce((sum, { points }) => sum + points.length, 0);
    if (!this.lines.some(({ points }) => points.length)) { this.tip.hidden = true; return; }
    const frame = this.frame(width, height);
    this.axes(pen, frame);
    for (const line of this.lines) this.line(pen, frame, line);
    this.crosshair(pen, frame);
  }

  axes(pen, frame) {
    const style = getComputedStyle(document.documentElement);
    pen.font = `12px ${style.getPropertyValue("--sans")}`;
    pen.fillStyle = style.getPropertyValue("--muted");
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of ticks(0, frame.high, Math.max(2, (frame.bottom - frame.top) / 64))) {
      const y = Math.round(frame.y(value)) + 0.5;
      pen.beginPath();
      pen.moveTo(frame.left, y);
      pen.lineTo(frame.right, y);
      pen.stroke();
      pen.fillText(this.options.y(value), frame.left - 9, y);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const marks = ticks(0, frame.end, Math.max(2, (frame.right - frame.left) / 110));
    for (const value of marks) if (frame.x(value) < frame.right - 30) pen.fillText(this.options.x(value), frame.x(value), frame.bottom + 9);
    pen.textAlign = "right";
    pen.fillText(this.options.xName, frame.right, frame.bottom + 9);
  }

  line(pen, frame, { points, colour, dash }) {
    if (!points.length) return;
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.lineJoin = "round";
    pen.setLineDash(dash ? [7, 5] : []);
    pen.beginPath();
    points.forEach(([x, y], i) => (i ? pen.lineTo(frame.x(x), frame.y(y)) : pen.moveTo(frame.x(x), frame.y(y))));
    pen.stroke();
    pen.setLineDash([]);
    const [x, y] = points[points.length - 1];
    pen.fillStyle = colour;
    pen.beginPath();
    pen.arc(frame.x(x), frame.y(y), 3.5, 0, 7);
    pen.fill();
  }

  crosshair(pen, frame) {
    this.tip.hidden = !this.pointer;
    if (!this.pointer) return;
    const [px] = this.pointer;
    const near = this.lines.filter(({ points }) => points.length).map((line) => {
      const point = line.points.reduce((best, p) => (Math.abs(frame.x(p[0]) - px) < Math.abs(frame.x(best[0]) - px) ? p : best));
      return { line, point };
    });
    const at = near.reduce((best, n) => (Math.abs(frame.x(n.point[0]) - px) < Math.abs(frame.x(best.point[0]) - px) ? n : best));
    const x = frame.x(at.point[0]);
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--line-strong");
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(x, frame.top);
    pen.lineTo(x, frame.bottom);
    pen.stroke();
    pen.setLineDash([]);
    this.tip.replaceChildren(`${this.options.x(at.point[0])} ${this.options.xName}`);
    for (const { line, point } of near) {
      if (Math.abs(frame.x(point[0]) - x) > 30) continue;
      const row = document.createElement("div");
      const mark = document.createElement("i");
      mark.style.background = line.colour;
      row.append(mark, `${line.name}  ${this.options.y(point[1])}`);
      this.tip.append(row);
    }
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const left = x + 14 + width > frame.right ? x - width - 14 : x + 14;
    const top = Math.min(Math.max(frame.top, this.pointer[1] - height / 2), frame.bottom - height);
    this.tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }
}
