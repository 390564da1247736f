// The curves of what is looked at, their common moment, and the same as a table.

import { make } from "./dom.js";
import { History, mean } from "./history.js";
import { Strip } from "./strip.js";
import { STRIPS } from "./strips.js";
import { UNITS, utc } from "./units.js";

const find = (id) => document.getElementById(id);
const COLUMNS = [
  ["signals", "busy", "share"], ["signals", "sm_active", "share"], ["signals", "sm_clock", "share"],
  ["signals", "power_w", "watts"], ["signals", "temperature_c", "celsius"], ["progress", "ready", "count"],
];

export class Curves {
  constructor() {
    this.history = new History();
    this.moment = null; // a second that was chosen, UTC
    this.pointed = null; // an index below the pointer
    this.strips = STRIPS.map((definition) => new Strip(definition, meaning, (index) => this.#point(index)));
    find("strips").append(...this.strips.map((strip) => strip.element));
    this.mean = make("button", { type: "button", hidden: true, onclick: () => this.#choose(null) }, "Mean again");
    find("moment").append(this.mean);
    find("scope").onchange = () => this.look();
    find("span").onchange = () => this.draw();
    find("at").oninput = () => this.#choose(this.history.start + Number(find("at").value));
    find("numbers").ontoggle = () => this.#table(true);
    find("strips").addEventListener("pointerleave", () => this.#point(null));
    matchMedia("(prefers-color-scheme: dark)").onchange = () => this.#restyle();
    this.look();
  }

  /** Look at what the choice says, from the beginning. */
  async look() {
    this.history.look(find("scope").value);
    this.moment = null;
    await this.update();
  }

  /** Draw what is new. */
  async update() {
    const news = await this.history.update();
    if (news) this.draw();
    const missing = this.history.start === null ? "Nothing has been observed yet." : "";
    if (find("no-history").textContent !== missing) find("no-history").textContent = missing;
  }

  draw() {
    if (this.history.start === null) return;
    for (const id of ["looks", "strips", "moment", "numbers"]) find(id).hidden = false;
    const end = this.history.start + this.history.seconds;
    const range = [end - Number(find("span").value), end - 1];
    if (this.moment !== null && this.moment < Math.max(range[0], this.history.start)) this.moment = null;
    for (const strip of this.strips) strip.draw(this.history, range);
    find("at").min = Math.max(0, range[0] - this.history.start);
    find("at").max = this.history.seconds - 1;
    this.#show();
    this.#table(false);
  }

  #restyle() {
    for (const strip of this.strips) strip.restyle();
    this.draw();
  }

  #point(index) {
    this.pointed = index;
    this.#show();
  }

  #choose(t) {
    this.moment = t;
    this.#show();
  }

  /** Values of the second below the pointer, else of the one chosen, else means. */
  #show() {
    const { start, seconds } = this.history;
    if (start === null) return;
    const chosen = this.moment === null ? null : this.moment - start;
    const index = this.pointed ?? chosen;
    const words = index === null ? `mean over the last ${find("span").selectedOptions[0].text}` : utc(start + index);
    find("when").textContent = words;
    find("at").value = chosen ?? seconds - 1;
    find("at").setAttribute("aria-valuetext", words);
    this.mean.hidden = this.moment === null;
    for (const strip of this.strips) {
      strip.show(index);
      if (this.pointed === null) strip.mark(this.moment);
    }
  }

  /** Whole minutes; made anew when it is opened and once a minute, so that it can be read. */
  #table(anew) {
    const details = find("numbers");
    const minute = `${this.history.query} ${Math.floor((this.history.start + this.history.seconds) / 60)}`;
    if (!details.open || this.history.start === null || (!anew && minute === this.minute)) return;
    this.minute = minute;
    details.querySelector("div").replaceChildren(table(this.history));
  }
}

/** The meaning of an account or a phase, from the lists below the curves. */
function meaning(group, key) {
  const term = document.querySelector(`#${group} [data-name="${CSS.escape(key)}"]`);
  return term?.nextElementSibling?.textContent ?? "";
}

function table(history) {
  const accounts = Object.keys(history.accounts).map((name) => ["accounts", name, "share"]);
  const columns = [...accounts, ...COLUMNS.filter(([group, name]) => history[group][name])];
  const head = ["minute", ...columns.map(([, name]) => name.replace(/_[wc]$/, "").replaceAll("_", " "))];
  const first = Math.ceil(history.start / 60) * 60;
  const rows = [];
  for (let t = first; t + 60 <= history.start + history.seconds; t += 60) {
    const from = t - history.start;
    const cells = columns.map(([group, name, unit]) => {
      const value = mean(history[group][name], from, from + 60);
      return make("td", {}, value === null ? "–" : UNITS[unit](value));
    });
    rows.unshift(make("tr", {}, make("th", { scope: "row" }, utc(t).slice(0, 5)), ...cells));
  }
  const caption = rows.length ? "Means of whole minutes, UTC, the latest first" : "No whole minute has been observed yet";
  return make(
    "table", {}, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...rows),
  );
}
