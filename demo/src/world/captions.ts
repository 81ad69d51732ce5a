/** Explains the page, with the numbers of the running world. */
import { byId, h } from "../page/dom.ts";
import { count } from "../page/format.ts";
import type { DemoWorld, WorldState } from "../state/world.ts";

/** Writes the texts as soon as the state of the world is known. */
export function explain(world: DemoWorld): void {
  const draw = (): void => {
    const { state } = world;
    if (!state) return;
    byId("words").replaceChildren(
      ...words(state).flatMap(([term, text]) => [h("div", {}, h("dt", {}, term), h("dd", {}, text))]),
    );
    world.removeEventListener("change", draw);
  };
  world.addEventListener("change", draw);
}

function why({ code, regions }: WorldState): string {
  if (code === "auto") {
    return `A second copy doubles the storage. Chunks cost a part of that, and every file survives the loss of a region.`;
  }
  const { k, m } = code;
  const survives = Math.floor(m / Math.ceil((k + m) / regions.length));
  return (
    `A second copy costs 2 times the storage, and ${k} + ${m} chunks cost ${((k + m) / k).toFixed(2)} times. Every file ` +
    `survives the loss of ${count(survives, "region")}.`
  );
}

function words(state: WorldState): [string, string][] {
  return [
    ["Why chunks?", why(state)],
    [
      "What is the edge for?",
      `A read is as slow as the slowest chunk that it needs. So a PoP next to you caches some chunks of each favourite, ` +
        `preferably those from farthest away. It decides which ones at each Cron Trigger.`,
    ],
    [
      "d3, p1?",
      `d3 is data chunk 3, and p1 is parity chunk 1. A parity chunk replaces a data chunk that did not arrive in time. ` +
        `The browser then decodes in WebAssembly, usually in a few milliseconds.`,
    ],
    [
      "What do the kinds mean?",
      `edge: all chunks are from a cache. mixed: from a cache and regions. origin: from regions only. degraded: a request ` +
        `failed and a different one replaced it. The file is right, because the reader checks the SHA-256 of every chunk.`,
    ],
    [
      "Is this real?",
      `The buckets, the PoPs (in workerd) and the service worker are real. The distances are emulated: estimates for six ` +
        `providers of one continent. "agarose dev --world agar" has the latencies of a paper over the whole world.`,
    ],
  ];
}
