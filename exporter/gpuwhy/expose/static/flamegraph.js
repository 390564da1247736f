// The drawing of a flame graph: callers above, what they call below, width is share of samples.

import { make } from "./dom.js";

const ROW_REM = 1.375;
const LEAST = 0.002; // of the width: narrower frames are not drawn
const HOTTEST = 15;
const FRAME = /^(.*) \((.*?)(?::(\d+))?\)$/;

/** A tree of {name, value, own, children} of `frame;frame;frame count` lines. */
export function parse(folded) {
  const root = node("all samples", null);
  for (const text of folded.split("\n")) {
    const cut = text.lastIndexOf(" ");
    const count = Number(text.slice(cut + 1));
    if (cut < 0 || !(count > 0)) continue;
    let at = root;
    at.value += count;
    for (const name of text.slice(0, cut).split(";")) {
      if (!at.children.has(name)) at.children.set(name, node(name, at));
      at = at.children.get(name);
      at.value += count;
    }
    at.own += count;
  }
  return root;
}

const node = (name, parent) => ({ name, parent, value: 0, own: 0, children: new Map() });

const LIBRARIES = new RegExp(
  "(site|dist)-packages/|/python[0-9.]*/" + // installed; and py-spy's paths, cut to the package:
    "|^(torch|transformers|lightning|accelerate|numpy|jax|multiprocessing|concurrent|asyncio|json)/" +
    "|^(threading|queue|selectors|runpy|socket|subprocess)\\.py$",
);

/** `own`: the job's code; `library`: what was installed; `runtime`: processes, threads. */
function kind(name) {
  const file = FRAME.exec(name)?.[2];
  if (!file || file.startsWith("<")) return "runtime";
  return LIBRARIES.test(file) ? "library" : "own";
}

export class Flame {
  constructor(folded) {
    this.root = parse(folded);
    this.zoomed = this.root;
    this.frames = make("div", { class: "flame", role: "tree", "aria-label": "Flame graph: arrow keys move, Enter zooms, Escape shows all" });
    this.element = make("div", {}, make("p", { class: "soft" }, "Callers above, what they call below; width is the share of samples. Orange is the job's own code, blue are libraries. Arrow keys move, Enter zooms in, Escape shows all."), this.frames);
    this.frames.addEventListener("keydown", (event) => this.#key(event));
  }

  draw(focused = this.zoomed) {
    this.drawn = new Map();
    this.frames.replaceChildren();
    const path = [];
    for (let at = this.zoomed.parent; at; at = at.parent) path.unshift(at);
    path.forEach((one, level) => this.#place(one, level, 0, 1));
    const deepest = this.#below(this.zoomed, path.length, 0, 1);
    this.frames.style.height = `${Math.min(deepest + 1, 40) * ROW_REM + 0.25}rem`;
    this.#focus(focused, false);
  }

  #below(one, level, left, width) {
    this.#place(one, level, left, width);
    let deepest = level;
    let x = left;
    for (const child of this.#children(one)) {
      const share = (width * child.value) / one.value;
      if (share >= LEAST) deepest = Math.max(deepest, this.#below(child, level + 1, x, share));
      x += share;
    }
    return deepest;
  }

  #children(one) {
    return [...one.children.values()].sort((a, b) => b.value - a.value);
  }

  #place(one, level, left, width) {
    const share = `${((100 * one.value) / this.root.value).toFixed(1)} % of samples`;
    const frame = make("div", {
      class: `frame ${kind(one.name)}`, role: "treeitem", tabIndex: -1, title: `${one.name}, ${share}`,
      "aria-level": level + 1, "aria-selected": "false", "aria-label": `${one.name}, ${share}`,
      onclick: () => this.#zoom(one),
    }, one.name);
    frame.style.left = `${left * 100}%`;
    frame.style.width = `${width * 100}%`;
    frame.style.top = `${level * ROW_REM}rem`;
    this.drawn.set(one, frame);
    this.frames.append(frame);
  }

  #zoom(one) {
    this.zoomed = one;
    this.draw(one);
    this.#focus(one, true);
  }

  /** Only one frame can be reached by Tab; the arrows go on from there. */
  #focus(one, now) {
    const frame = this.drawn.get(one);
    if (!frame) return;
    if (this.focused) this.drawn.get(this.focused)?.setAttribute("tabindex", "-1");
    this.focused = one;
    frame.tabIndex = 0;
    if (now) frame.focus();
  }

  #key(event) {
    const siblings = this.focused.parent ? this.#children(this.focused.parent) : [this.focused];
    const place = siblings.indexOf(this.focused);
    const to = {
      ArrowUp: this.focused.parent,
      ArrowDown: this.#children(this.focused)[0],
      ArrowLeft: siblings[place - 1],
      ArrowRight: siblings[place + 1],
    }[event.key];
    if (to && this.drawn.has(to)) this.#focus(to, true);
    else if (event.key === "Enter" || event.key === " ") this.#zoom(this.focused);
    else if (event.key === "Escape") this.#zoom(this.root);
    else return;
    event.preventDefault();
  }

  /** Where the time was itself, without what was called: the same for those who read. */
  table() {
    const own = new Map();
    const add = (one) => {
      if (one.own) own.set(one.name, (own.get(one.name) ?? 0) + one.own);
      one.children.forEach(add);
    };
    add(this.root);
    const hottest = [...own].sort((a, b) => b[1] - a[1]).slice(0, HOTTEST);
    const rows = hottest.map(([name, count]) => make("tr", {},
      make("td", {}, `${((100 * count) / this.root.value).toFixed(1)} %`),
      make("th", { scope: "row" }, make("code", {}, name))));
    return make("table", { class: "own" }, make("caption", {}, "Where the samples ended"),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "share"), make("th", { scope: "col" }, "function"))),
      make("tbody", {}, ...rows));
  }
}
