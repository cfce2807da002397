// One WebSocket to the server: questions with answers, and news that the server pushes.
const PATIENCE = 180000; // the first use of an agent compiles it
const PULSE = 5000; // between two signs of life that are asked of the server
const SILENT = 12000; // without one the connection is dead, whatever the browser thinks

class Link {
  constructor() {
    this.waiting = new Map();
    this.listeners = new Map();
    this.openers = [];
    this.count = 0;
    this.delay = 250;
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/ws`);
    this.socket.onopen = () => {
      this.delay = 250;
      this.heard = performance.now();
      clearInterval(this.pulse);
      this.pulse = setInterval(() => {
        if (performance.now() - this.heard > SILENT) this.socket.close();
        else this.send("ping");
      }, PULSE);
      this.tell("link", true);
      for (const open of this.openers) open();
    };
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = () => {
      clearInterval(this.pulse);
      for (const { reject } of this.waiting.values()) reject(new Error("The connection was lost; trying again."));
      this.waiting.clear();
      this.tell("link", false);
      setTimeout(() => this.connect(), this.delay);
      this.delay = Math.min(this.delay * 1.7, 5000);
    };
  }

  get open() { return this.socket?.readyState === WebSocket.OPEN; }

  receive(message) {
    this.heard = performance.now();
    if (message.push) return this.tell(message.push, message);
    const asked = this.waiting.get(message.id);
    if (!asked) return;
    this.waiting.delete(message.id);
    clearTimeout(asked.timer);
    if (message.error) asked.reject(new Error(message.error));
    else asked.resolve(message);
  }

  ask(what, fields = {}) {
    return new Promise((resolve, reject) => {
      if (!this.open) return reject(new Error("Not connected to the server."));
      const id = ++this.count;
      const timer = setTimeout(() => { this.waiting.delete(id); reject(new Error("No answer in time.")); }, PATIENCE);
      this.waiting.set(id, { resolve, reject, timer });
      this.socket.send(JSON.stringify({ id, do: what, ...fields }));
    });
  }

  send(what, fields = {}) { if (this.open) this.socket.send(JSON.stringify({ do: what, ...fields })); }

  on(what, listener) { this.listeners.set(what, [...(this.listeners.get(what) ?? []), listener]); }

  tell(what, message) { for (const listener of this.listeners.get(what) ?? []) listener(message); }

  whenOpen(open) {
    this.openers.push(open);
    if (this.open) open();
  }
}

export const link = new Link();
