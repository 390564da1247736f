// How a value of a curve is written.

const share = (value) => `${(value * 100).toFixed(0)} %`;
const watts = (value) => `${value.toFixed(0)} W`;
const celsius = (value) => `${value.toFixed(0)} °C`;
/** One digit after the point of small numbers, where it says something. */
const count = (value) => (value < 10 && !Number.isInteger(value) ? value.toFixed(1) : value.toFixed(0));

function rate(value) {
  const step = value >= 1e9 ? [1e9, "GB/s"] : value >= 1e6 ? [1e6, "MB/s"] : [1e3, "kB/s"];
  return `${count(value / step[0])} ${step[1]}`;
}

export const UNITS = { share, watts, celsius, count, rate };

/** 14:03:05 UTC of a second. */
export const utc = (t) => `${new Date(t * 1000).toISOString().slice(11, 19)} UTC`;
