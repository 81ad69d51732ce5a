/** Builds DOM elements. */

type Child = Node | string | number | undefined | false;
type Properties = Readonly<Record<string, unknown>>;

/** Returns an element with properties (`on…` as listeners, others as attributes) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), properties, children);
}

/** Returns an SVG element in the same way. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  properties: Properties = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

/** Returns a table below the names of its columns. */
export function table(columns: readonly string[], body: HTMLTableSectionElement): HTMLTableElement {
  const head = columns.map((column) => h("th", { scope: "col" }, column));
  return h("table", {}, h("thead", {}, h("tr", {}, ...head)), body);
}

/** Returns a row of such a table. */
export function row(...cells: readonly Child[]): HTMLTableRowElement {
  return h("tr", {}, ...cells.map((cell) => h("td", {}, cell)));
}

/** Returns the element of index.html with this id. Throws without one. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no element with the id ${id}`);
  return element as T;
}

function fill<T extends Element>(element: T, properties: Properties, children: readonly Child[]): T {
  for (const [name, value] of Object.entries(properties)) {
    // ARIA states are words: "false" differs from an absent attribute.
    if (value === undefined || (value === false && !name.startsWith("aria-"))) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else if (value === true && !name.startsWith("aria-")) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  for (const child of children) {
    if (child !== undefined && child !== false) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}
