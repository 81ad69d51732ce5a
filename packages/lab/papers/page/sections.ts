/** All sections of the page, and the page itself. */

import { agar } from "./agar.ts";
import { c2p } from "./c2p.ts";
import { ecCache } from "./ec-cache.ts";
import { liu } from "./liu.ts";
import { prose, table } from "./page.ts";
import type { Section } from "./page.ts";
import { sprout } from "./sprout.ts";
import { together } from "./together.ts";

export const HEAD = [
  "# The papers' figures and ours",
  prose`
    \`node packages/lab/papers/page/main.ts\` and \`npm run format\` regenerate this page in some minutes. Every figure of
    ours comes from the models of [scenarios](../reference/scenarios.md) and \`packages/solver\`. Where it differs from the published one,
    the text says why. Caches change at each request, and those of PoPs that place together once a period.
  `,
  "**What was fitted.** A figure that a fitted number determines confirms nothing.",
  table(
    ["number", "fitted to", "because"],
    ["Agar: six latencies", "three published means", "Table I of the paper gives about four times the published means"],
    ["Agar: 4.7 reads a second", "two waiting clients at 0.42 s", "it is not printed"],
    ["Liu: hot set of 6.5% of the objects", "published gains of LRU and LFU", "no rank-Zipf law gives them"],
    ["Liu: decoding in 56.5 ms", "18.82 ms over the backend's reads", "it is not printed"],
    ["EC-Cache: decoding at 1.4 GB/s", "30% of the published mean", "it is not printed"],
    ["EC-Cache: 800 ms of storage", "published mean under failure", "it is not printed"],
    ["C2P: exponents 0.7 and 0.8", "published gain in hits", "it is not printed"],
    ["EC-Cache: 800 objects", "nothing, chosen; Fig. 9 shows 200 and 3,000 too", "it is not printed"],
    ["EC-Cache: 2% stragglers, four times slower", "nothing, chosen; as in our other scenarios", "it is not printed"],
    ["EC-Cache: loads of 0.3 to 0.6, and 30 clients", "nothing, all shown", "it is not printed"],
    ["C2P: 30 s of Algorithm 1", "nothing, chosen", "it is not printed"],
    ["C2P: weights of nodes from 0.5 to 1.5", "nothing, chosen", "only that placement is uneven is printed"],
    ["Sprout: room for 15 and 10 chunks", "nothing, chosen; 8 to 20 give the same picture", "it is not printed"],
  ),
  prose`
    Diagrams and set-ups have no row here, because they state no result: architecture, placement, examples and algorithms as
    figures, maps of sites, tables of symbols, and tables of parameters, which the models take.
  `,
  "**Where we depart from a paper, and what that changes.**",
  table(
    ["paper", "departure", "effect"],
    [
      "Agar, Sprout",
      "reads keep what they fetched for a period's fill, from the second read at a PoP on, instead of filling themselves",
      "0 bytes fetched per byte filled in 720 reads through a PoP, 1.0 before; readers with a service worker: k requests per filled stripe",
    ],
    [
      "Agar IV-A",
      "an option of weight 2 is valued by its own saving",
      "only that option: read literally, it has the value of weight 3",
    ],
    [
      "Agar VI",
      "PoPs never stop the heuristic early",
      "none: `agar` takes all its passes at a PoP, and the default solves the knapsack in under a millisecond",
    ],
    ["Agar IV-B", "`exact` solves the knapsack exactly", "the heuristic loses 3.6% of the value"],
    ["Liu, Algorithm 3", "exact knapsack inside", "the same optimum, checked against Algorithms 1 and 2"],
    [
      "Liu, Algorithm 3",
      "room for the missing chunks suffices, instead of room for K",
      "none: the same mean and writes in `liu-three-sites` and `five-together`",
    ],
    [
      "Liu II",
      "options take the nearest k of n, so caches may hold parity",
      "11 of 90 chunks are parity without faults",
    ],
    [
      "Sprout, Algorithm 1",
      "exact d by knapsack and exchanges; spectral gradient steps",
      "within 0.1% of the optimum in 24 small cases; [large ones](policies-measured.md#why-options-are-valued-as-they-are) lose 0 to 12% to longer searches",
    ],
    [
      "Sprout III",
      "no time bins that begin where a change of the request rates is detected: rates are a moving average over fixed periods",
      "not measured; plans follow a change one period later",
    ],
    [
      "Sprout, Lemma 2",
      "the objective is not convex in all variables at once, as the lemma has it, when files of different z share a server",
      "the best round is kept, and single chunks are exchanged at the end",
    ],
    [
      "Sprout IV-A",
      "readers take the nearest chunks",
      "simulated, drawing their order saved 20% of the mean near saturation and cost 2% far from it",
    ],
    [
      "EC-Cache 4.2",
      "k + delta requests go to the nearest chunks, not to random ones",
      "an uncached read of `five-together` takes 42 to 47% longer with random ones; 8% with the extra one alone random",
    ],
    [
      "C2P 3.2",
      "PoPs state their reads once a period by key, instead of an event for each hit and miss",
      "`POLICY=c2p` takes 1801 ms where events at each read give 1676",
    ],
    [
      "Sprout IV",
      "PoPs take every region for idle: buckets have other users, so neither a PoP's requests in flight nor the growth of a latency says how busy one is; measured latencies contain the wait",
      "`POLICY=sprout` takes 1% less at a load of 30%, 11% less at 90%",
    ],
    [
      "EC-Cache 6.1",
      "more rows of hot objects are in caches, within `CACHE_BYTES`, and in buckets, within the storage of `hot`, and chosen by the time that they save; servers are not evened out",
      "with 5% more storage a read of `five-together` takes 21% less at 3+1, 29% less at 4+1",
    ],
    [
      "C2P 3.2",
      "peers are listed by `agarose deploy`; they do not discover each other",
      "a new PoP has peers from its deployment on",
    ],
    [
      "C2P 6",
      "no prefetch: PoPs fill only what readers have asked for",
      "not measured; a client cannot have chunks fetched that nobody reads",
    ],
    [
      "C2P 3.3",
      "OiC counts states instead of events",
      "the same hits in the storage model, at most 1.0 points of the partial misses",
    ],
  ),
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
