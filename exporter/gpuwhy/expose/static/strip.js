// One strip: a curve drawn by uPlot, with its title, its legend and a description in words.

import { colour, make, slug } from "./dom.js";
import { mean } from "./history.js";
import { UNITS, utc } from "./units.js";

const AXIS_REM = 4.75;
/** From one time on the axis to the next: to the second they are wide. */
const TIME_REM = 4.5;
const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

export class Strip {
  /** `words` gives the meaning of a key; `hovered` is told the index below the pointer, or null. */
  constructor(definition, words, hovered) {
    this.definition = definition;
    this.words = words;
    this.hovered = hovered;
    this.canvas = make("div", { role: "img" });
    this.legend = make("ul", { class: "legend" });
    this.caption = make("figcaption", {}, make("b", {}, definition.title), make("span", {}, definition.note));
    this.element = make("figure", { class: "strip", id: `strip-${definition.id}` }, this.caption, this.canvas, this.legend);
    this.keys = null;
    new ResizeObserver(() => this.#resize()).observe(this.canvas);
  }

  /** Draw the history between two times. */
  draw(history, range) {
    this.history = history;
    this.range = range;
    const series = this.#series();
    const keys = series.map((one) => one.key).join();
    if (keys !== this.keys) this.#rebuild(series, keys);
    this.plot?.setData(this.#data(series));
  }

  /** Forget the drawing: the next one is made with the colours of the moment. */
  restyle() {
    this.keys = null;
  }

  #columns() {
    return this.history[this.definition.group];
  }

  #series() {
    const columns = this.#columns();
    const { stacked, family, lines } = this.definition;
    const drawn = stacked?.map((key) => ({ key, label: key, colour: `${family}-${slug(key)}` })) ?? lines;
    return drawn.filter(({ key }) => columns[key]?.some((v) => v !== null && (v !== 0 || !stacked)));
  }

  /** uPlot's columns; of a stack each is the sum of itself and those below it. */
  #data(series) {
    const columns = this.#columns();
    const times = this.history.times();
    const shown = series.map(({ key }) => columns[key]);
    if (!this.definition.stacked) return [times, ...shown];
    const sum = new Array(times.length).fill(0);
    return [times, ...shown.map((column) => column.map((v, i) => (v === null ? null : (sum[i] += v))))];
  }

  #rebuild(series, keys) {
    this.keys = keys;
    this.series = series;
    this.plot?.destroy();
    this.plot = null;
    this.canvas.replaceChildren();
    this.legend.replaceChildren(...series.map((one) => this.#entry(one)));
    if (!series.length) this.canvas.append(make("p", { class: "soft" }, this.definition.missing));
    else this.plot = new uPlot(this.#options(series), null, this.canvas);
  }

  #entry(one) {
    one.output = make("output");
    one.swatch = make("span", { class: one.dashed ? "swatch dashed" : "swatch" });
    one.swatch.style.color = `var(--${one.colour})`;
    return make("li", { title: this.words(this.definition.group, one.key) }, one.swatch, make("span", {}, one.label), one.output);
  }

  #options(series) {
    const { definition } = this;
    const grid = { stroke: colour("grid"), width: 1 };
    const ink = { stroke: colour("soft"), grid, ticks: grid, font: `${0.75 * rem()}px system-ui, sans-serif` };
    const write = UNITS[definition.unit];
    return {
      width: this.canvas.clientWidth,
      height: this.#height(),
      padding: [8, 4, 4, 0],
      legend: { show: false },
      tzDate: (t) => uPlot.tzDate(new Date(t * 1000), "Etc/UTC"),
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false }, sync: { key: "gpuwhy" } },
      scales: { x: { range: () => this.range }, y: this.#scale() },
      axes: [
        { ...ink, size: definition.timed ? 1.75 * rem() : 6, space: TIME_REM * rem(), values: (...now) => this.#times(...now) },
        { ...ink, size: AXIS_REM * rem(), space: 1.4 * rem(), splits: definition.ticks && (() => definition.ticks), filter: (_, ticks) => ticks, values: (_, ticks) => ticks.map(write) },
      ],
      series: [{}, ...series.map((one) => this.#curve(one))],
      bands: definition.stacked ? series.slice(1).map((_, i) => ({ series: [i + 2, i + 1] })) : undefined,
      hooks: { setCursor: [(plot) => this.#pointed(plot)] },
    };
  }

  /** Times at the axis: to the minute, or to the second where they stand closer. */
  #times(_, ticks, __, ___, step) {
    return ticks.map((t) => (this.definition.timed ? utc(t).slice(0, step < 60 ? 8 : 5) : ""));
  }

  #scale() {
    const [low, high] = this.definition.range;
    if (this.definition.logarithmic) return { distr: 3, range: () => [low, high] };
    return { range: (_, __, most) => [low, high ?? Math.max(1, (most ?? 0) * 1.1)] };
  }

  #curve({ colour: name, dashed }) {
    const ink = colour(name);
    if (this.definition.stacked) return { stroke: colour("back"), width: 0.5, fill: ink, points: { show: false }, spanGaps: false };
    return { stroke: ink, width: 2, dash: dashed ? [6, 4] : undefined, points: { show: false }, spanGaps: false };
  }

  #height() {
    return Math.round((this.definition.tall ? 13 : this.definition.timed ? 7 : 6) * rem());
  }

  #resize() {
    const width = this.canvas.clientWidth;
    if (this.plot && width && Math.abs(width - this.plot.width) > 1) this.plot.setSize({ width, height: this.#height() });
  }

  #pointed(plot) {
    if (plot.cursor.event) this.hovered(plot.cursor.idx ?? null);
  }

  /** Show the values at an index, or the means of the range where it is null. */
  show(index) {
    if (!this.series) return;
    const from = Math.max(0, this.range[0] - this.history.start);
    const write = UNITS[this.definition.unit];
    const said = this.series.map((one) => {
      const column = this.#columns()[one.key] ?? [];
      const value = index === null ? mean(column, from, this.history.seconds) : column[index];
      one.output.textContent = value === null || value === undefined ? "–" : write(value);
      return `${one.label} ${one.output.textContent}`;
    });
    this.canvas.ariaLabel = `${this.definition.title} ${said.join(", ") || this.definition.missing}`;
  }

  /** Put the line of the cursor on a time, or take it away. */
  mark(t) {
    this.plot?.setCursor({ left: t === null ? -10 : this.plot.valToPos(t, "x"), top: t === null ? -10 : 0 }, false);
  }
}
