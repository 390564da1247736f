// Brings the page up to date without loading it again, and starts the curves and the flame graph.

import { Curves } from "./curves.js";
import { askForFlame } from "./flame.js";

const EVERY_MS = 2000;
const find = (id) => document.getElementById(id);

/** The page as the exporter makes it now, as a document in which no script runs. */
function load() {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", ".");
    request.responseType = "document";
    request.timeout = 10000;
    request.onload = () => (request.status === 200 ? resolve(request.responseXML) : reject(new Error(`status ${request.status}`)));
    request.onerror = () => reject(new Error("no connection"));
    request.ontimeout = () => reject(new Error("no answer"));
    request.send();
  });
}

const version = (page) => page.querySelector('meta[name="gpuwhy-version"]')?.content;

/** Change what differs and nothing else: focus, selection and what was unfolded stay. */
function bring(page) {
  if (version(page) !== version(document)) location.reload();
  const before = said();
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = page.getElementById(old.id);
    if (now) Idiomorph.morph(old, now, { callbacks: { beforeAttributeUpdated: keepOpen } });
  }
  for (const id of ["scope", "pid"]) bringOptions(find(id), page.getElementById(id));
  announce(before, said());
}

const keepOpen = (name, node) => !(name === "open" && node instanceof HTMLDetailsElement);

function bringOptions(old, now) {
  if (!old || !now || old.dataset.source === now.textContent) return;
  const chosen = old.value;
  old.dataset.source = now.textContent;
  old.replaceChildren(...[...now.children].map((child) => document.importNode(child, true)));
  if ([...old.options].some((option) => option.value === chosen)) old.value = chosen;
  else old.dispatchEvent(new Event("change"));
}

/** What each run's verdict is, in a sentence. */
const said = () => new Map([...document.querySelectorAll("[data-said]")].map((run) => [run.id, run.dataset.said]));

/** Tell a screen reader of verdicts that changed, and of nothing else. */
function announce(before, now) {
  const changed = [...now].filter(([id, words]) => before.get(id) !== words).map(([, words]) => words);
  if (changed.length) find("said").textContent = changed.join(". ");
}

function trouble(words) {
  if (find("trouble").textContent !== words) find("trouble").textContent = words;
}

let last = new Date();
let paused = false;
let curves = null;

async function refresh() {
  if (!paused && !document.hidden) {
    try {
      bring(await load());
      await curves.update();
      last = new Date();
      trouble("");
    } catch (error) {
      const since = last.toISOString().slice(11, 19);
      trouble(`The exporter has not answered since ${since} UTC (${error.message}). What is shown is from then.`);
    }
  }
  setTimeout(refresh, EVERY_MS);
}

function pause() {
  paused = !paused;
  find("pause").textContent = paused ? "Go on" : "Pause";
}

/** What a link leads to must not be folded. */
function unfold() {
  const target = location.hash && find(location.hash.slice(1));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView();
}

find("pause").hidden = false;
find("pause").onclick = pause;
addEventListener("hashchange", unfold);
unfold();
curves = new Curves();
askForFlame();
setTimeout(refresh, EVERY_MS);
