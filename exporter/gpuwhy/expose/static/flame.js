// A flame graph on request: asks for folded stacks, makes a tree of them, draws it.

import { make } from "./dom.js";
import { Flame } from "./flamegraph.js";

const find = (id) => document.getElementById(id);

/** Let the form do what its button says; where flame graphs are off there is no form. */
export function askForFlame() {
  const form = find("ask");
  if (!form) return;
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    take(Number(find("pid").value), Number(find("seconds").value), find("token").value);
  });
}

async function take(pid, seconds, token) {
  find("take").disabled = true;
  const began = Date.now();
  const tell = () => {
    const left = seconds - Math.round((Date.now() - began) / 1000);
    find("taking").textContent = left > 0 ? `Sampling, ${left} s to go.` : "Reading the stacks.";
  };
  tell();
  const ticking = setInterval(tell, 5000);
  try {
    const folded = await ask(pid, seconds, token);
    find("taking").textContent = "Taken.";
    show(folded, pid);
  } catch (error) {
    find("taking").textContent = `Not taken: ${error.message}.`;
  } finally {
    clearInterval(ticking);
    find("take").disabled = false;
  }
}

async function ask(pid, seconds, token) {
  const response = await fetch("api/v1/profile", {
    method: "POST",
    headers: { "Content-Type": "application/json", "Gpuwhy-Token": token },
    body: JSON.stringify({ pid, seconds }),
  });
  if (response.ok) return response.text();
  const refusal = await response.json().catch(() => ({}));
  throw new Error(refusal.detail ?? `status ${response.status}`);
}

function show(folded, pid) {
  const flame = new Flame(folded);
  const file = new Blob([folded], { type: "text/plain" });
  const link = make("a", { href: URL.createObjectURL(file), download: `gpuwhy-${pid}.raw` }, "Keep the stacks as a file");
  find("graph").replaceChildren(flame.element, link, flame.table());
  flame.draw();
}
