// Everything that changes a game waits its turn here: keys, clicks, games that are opened. What waits when another
// game is opened was meant for the one before, and is forgotten.
const MOST = 6;
let last = Promise.resolve();
let waiting = 0;
let generation = 0;

export function deed(act) {
  if (waiting >= MOST) return Promise.resolve();
  const mine = generation;
  waiting++;
  const turn = last.then(() => (mine === generation ? act() : undefined));
  last = turn.catch(() => {}).then(() => { if (mine === generation) waiting--; });
  return turn;
}

export function instead(act) {
  generation++;
  waiting = 0;
  return deed(act);
}

export const idle = () => waiting === 0;
