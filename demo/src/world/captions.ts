/** Explains the page, with the numbers of the running world. */
import { byId, h } from "../page/dom.ts";
import { count } from "../page/format.ts";
import type { DemoWorld, WorldState } from "../state/world.ts";

/** Writes the texts as soon as the state of the world is known. */
export function explain(world: DemoWorld): void {
  const draw = (): void => {
    const { state } = world;
    if (!state) return;
    byId("lead").textContent = lead(state);
    byId("words").replaceChildren(
      ...words(state).flatMap(([term, text]) => [h("div", {}, h("dt", {}, term), h("dd", {}, text))]),
    );
    world.removeEventListener("change", draw);
  };
  world.addEventListener("change", draw);
}

function lead({ code, regions }: WorldState): string {
  if (code === "auto") {
    return (
      `Each file is stored in ${regions.length} regions so that the loss of one harms nothing: small files as copies, large ` +
      `ones as data chunks and parity chunks. Your browser asks for a few more than it needs, and uses those that come first.`
    );
  }
  const { k, m } = code;
  return (
    `Each file is cut into ${k} data chunks. ${m} parity chunks are computed from them, and the ${k + m} chunks are stored in ` +
    `${regions.length} regions. Any ${k} of them give the file back. So your browser asks for a few more than ${k}, uses those ` +
    `that come first, and drops the rest.`
  );
}

function why({ code, regions }: WorldState): string {
  if (code === "auto") {
    return `Three copies cost 3 times the storage. Codes by size cost half of that. Kill a region: every file is still readable.`;
  }
  const { k, m } = code;
  const survives = Math.floor(m / Math.ceil((k + m) / regions.length));
  return (
    `Three copies cost 3 times the storage. ${k} + ${m} chunks cost ${((k + m) / k).toFixed(2)} times. After the loss of ` +
    `${count(survives, "whole region")} every file is still readable. Kill one and see the lanes change colour.`
  );
}

function words(state: WorldState): [string, string][] {
  const { scale } = state;
  return [
    ["Why chunks?", why(state)],
    [
      "What is the edge for?",
      `A read is as slow as the slowest chunk that it needs. So a PoP next to you caches some chunks of each favourite, ` +
        `preferably those from farthest away. It solves this knapsack exactly at each Cron Trigger.`,
    ],
    [
      "d3, p1?",
      `d3 is data chunk 3, and p1 is parity chunk 1. A parity chunk replaces a data chunk that did not come in time. The ` +
        `browser then decodes in WebAssembly, usually in a few milliseconds.`,
    ],
    [
      "What do the kinds mean?",
      `edge: all chunks come from a cache. mixed: from a cache and regions. origin: from regions only. degraded: a request ` +
        `failed and another one replaced it. The file is right, because the reader checks the SHA-256 of every chunk.`,
    ],
    [
      "Is this real?",
      `The buckets, the PoPs (in workerd) and the service worker are real. The distances are emulated: latencies that a ` +
        `paper measured from Frankfurt (Agar, ICDCS 2017), times ${scale}, with jitter.`,
    ],
  ];
}
