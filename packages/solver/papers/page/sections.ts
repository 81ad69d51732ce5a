/** All sections of the page, and the page itself. */

import { agar } from "./agar.ts";
import { c2p } from "./c2p.ts";
import { ecCache } from "./ec-cache.ts";
import { liu } from "./liu.ts";
import { prose } from "./page.ts";
import type { Section } from "./page.ts";
import { sprout } from "./sprout.ts";
import { together } from "./together.ts";

export const HEAD = [
  "# The papers' figures and ours",
  prose`
    \`node packages/solver/papers/page/main.ts\` and \`npm run format\` regenerate this page in some minutes. Every figure of
    ours comes from the models of [scenarios](../reference/scenarios.md) and \`packages/solver\`. Where it differs from the published one,
    the text says why. What a paper does not print had to be chosen. Some choices were fitted to published figures, and the
    text names each: the latencies for Agar, Liu's hot set and decoding time, EC-Cache's decoding speed and the 800 ms of its
    storage, and C2P's exponents. A figure that such a choice determines confirms nothing.
  `,
].join("\n\n");

/** The sections by the name that the command line takes, in the order of the page. */
export const SECTIONS: Readonly<Record<string, () => Section>> = {
  agar,
  liu,
  sprout,
  "ec-cache": ecCache,
  c2p,
  together,
};

/**
 * Returns the page. Sections in `known` (by title) keep the tables listed there; the tables of all others are computed.
 */
export async function renderPage(head: string, known: ReadonlyMap<string, readonly string[]>): Promise<string> {
  const blocks = [head];
  for (const write of Object.values(SECTIONS)) {
    const { title, parts } = write();
    const tables = [...(known.get(title) ?? [])];
    blocks.push(title);
    for (const part of parts) blocks.push(typeof part === "string" ? part : (tables.shift() ?? (await part())));
  }
  return `${blocks.join("\n\n")}\n`;
}

/** The tables of a page, by the title of their section. */
export function tablesOf(page: string): Map<string, string[]> {
  const tables = new Map<string, string[]>();
  for (const text of page.split(/\n(?=## )/)) {
    const blocks = text.trim().split(/\n{2,}/);
    tables.set(
      blocks[0]!,
      blocks.filter((block) => block.startsWith("|")),
    );
  }
  return tables;
}
