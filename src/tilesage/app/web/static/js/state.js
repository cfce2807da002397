// The state of the page, in one place. A part of the page names what it draws and is told when that changes.
const listeners = [];

export const state = {
  lab: null, // games, agents and models of this server
  up: false, // the connection
  tab: "play",
  play: null, // the game of each tab
  watch: null,
  replay: null,
  node: null, // the position on the board
  watching: false, // does the program play on
  byHand: false, // chance
  judging: false,
};

export function set(changes) {
  const changed = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  Object.assign(state, changes);
  tell(...changed);
}

// Something inside these has changed.
export function tell(...names) {
  if (!names.length) return;
  for (const { wanted, draw } of listeners) if (wanted.some((name) => names.includes(name))) draw(names);
}

export const on = (wanted, draw) => listeners.push({ wanted, draw });

// The game of the tab that is open.
export const now = () => state[state.tab] ?? null;
