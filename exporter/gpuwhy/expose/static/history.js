// The last 15 minutes, kept in step with the exporter: only what is new is asked for.

import { getJson } from "./dom.js";

const KEPT_S = 900;
const GROUPS = ["accounts", "signals", "phases", "progress"];

export class History {
  constructor() {
    this.look("");
  }

  /** Begin anew with what this query of /api/v1/history selects. */
  look(query) {
    this.query = query;
    this.start = null;
    this.seconds = 0;
    for (const group of GROUPS) this[group] = {};
  }

  /** Take over what is new; false where there was nothing, or something else is looked at by now. */
  async update() {
    const query = this.query;
    const since = this.start === null ? 0 : this.start + this.seconds;
    const found = await getJson(`api/v1/history?${query}&since=${since}`);
    if (query !== this.query || found.start === null) return false;
    if (this.start === null || found.start - since > KEPT_S) {
      this.look(query);
      this.start = found.start;
    }
    this.#append(found);
    this.#trim();
    return true;
  }

  #append(found) {
    const before = found.start - this.start;
    const seconds = before + found.seconds;
    for (const group of GROUPS) {
      const columns = this[group];
      for (const name of new Set([...Object.keys(columns), ...Object.keys(found[group])])) {
        const column = (columns[name] ??= []);
        while (column.length < before) column.push(null);
        column.push(...(found[group][name] ?? new Array(found.seconds).fill(null)));
      }
    }
    this.seconds = seconds;
  }

  #trim() {
    const over = Math.max(0, this.seconds - KEPT_S);
    for (const group of GROUPS) {
      for (const column of Object.values(this[group])) column.splice(0, over);
    }
    this.start += over;
    this.seconds -= over;
  }

  /** The times of all seconds, UTC. */
  times() {
    return Array.from({ length: this.seconds }, (_, i) => this.start + i);
  }
}

/** The mean of what is known from one index to before another; null where nothing is. */
export function mean(column, from, to) {
  let sum = 0;
  let known = 0;
  for (let i = from; i < to; i++) {
    if (column[i] !== null && column[i] !== undefined) {
      sum += column[i];
      known += 1;
    }
  }
  return known ? sum / known : null;
}
