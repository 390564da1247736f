// Elements made of plain data: a text is only ever a text, never markup.

/** An element with properties, dataset and aria attributes included, and children or texts. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** The value of a custom property of the style sheets. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A name as part of a class or a custom property, as the server makes it. */
export const slug = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, "-");

/** JSON of the exporter; an Error with its reason otherwise. */
export async function getJson(url) {
  const response = await fetch(url, { cache: "no-store" });
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.json();
}
