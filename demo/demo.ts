/** The demo as a local world loads it: package.json of the repository names this module as `agarose.demo`. */
import type { Demo } from "@agarose/dev-world";

/** Loaded where it is needed, because Vite and the makers of samples are large. */
const demo: Demo = {
  storeSamples: async (uploader) => (await import("./samples/store.ts")).storeSamples(uploader),
  startDemo: async (options) => (await import("./server.ts")).startDemo(options),
};

export const { storeSamples, startDemo } = demo;
