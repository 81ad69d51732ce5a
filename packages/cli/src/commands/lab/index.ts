/**
 * The definitions of `agarose lab` and its verbs: experiments with caches, codes and latencies, none of which a
 * deployment needs.
 */
import { AgaroseError } from "@agarose/core";
import { READS_MAX } from "@agarose/solver/traces";
import { parseDuration, parseSize } from "@agarose/storage/maintenance/amounts";
import { defineCommand, flag, option, positional, repeatable, valued, type CommandGroup } from "../../command.ts";
import { LOG_FORMAT } from "../../ui/args.ts";
import { parseCount, parseNumber } from "../../ui/units.ts";

/** Arguments and options of `agarose lab solve`. */
export const solveArgs = {
  file: positional(
    "<file>",
    'JSON {"capacity", "objects": [{"weights": [...], "values": [...]}]}, or - for standard input',
  ),
  timeLimit: option("<duration>", "stop the proof after this time, such as 0.5s, and print the gap", {
    parse: parseDuration({ min: 0 }),
  }),
};

const solve = defineCommand({
  name: "solve",
  description: "choose caching options exactly: a multiple-choice knapsack with proof",
  examples: [["lab solve samples/instance.json", "solve a small instance, and print how long it took"]],
  args: solveArgs,
  withoutConfig: true,
  run: async (values) => (await import("./solve.ts")).solve(values),
});

/** Arguments and options of `agarose lab simulate`. */
export const simulateArgs = {
  files: positional(
    "<file...>",
    "access logs, plain or gzipped, or one scenario of docs/reference/scenarios.md, such as samples/scenario.json",
  ),
  seed: option("<n>", "override the scenario's seed", { parse: parseCount() }),
  runs: option("<n>", "override the number of runs that are pooled", { parse: parseCount() }),
  trace: repeatable("<log>", "replay this access log instead of drawn requests, or - for stdin; repeatable"),
  format: LOG_FORMAT,
  readsMax: option(
    "<n>",
    `keep about this many reads of a longer log, by a sample of its objects (default ${READS_MAX})`,
    { parse: parseCount() },
  ),
  strict: flag("refuse the log at its first malformed line instead of skipping it"),
  cacheSizes: option("<factors>", "also try caches of these multiples of the size, such as 0.5,1,2,4", {
    parse: (text) =>
      text
        .split(",")
        .map(parseNumber())
        .toSorted((a, b) => a - b),
  }),
};

const simulate = defineCommand({
  name: "simulate",
  description: "compare caching policies and cache sizes on a scenario or on your own access log",
  examples: [
    ["lab simulate samples/scenario.json", "compare the policies of a scenario"],
    ["lab simulate access.log.gz", "replay a log, and compare cache sizes"],
  ],
  args: simulateArgs,
  withoutConfig: true,
  run: async (values) => (await import("./simulate/simulate.ts")).run(values),
});

/** Arguments and options of `agarose lab advise`. */
export const adviseArgs = {
  file: positional(
    "<file>",
    "JSON of docs/reference/scenarios.md, such as samples/advice.json: regions, prices, audience",
  ),
  trace: repeatable(
    "<log>",
    "count objects, sizes, reads and popularity in this access log, or - for stdin; repeatable",
  ),
  format: LOG_FORMAT,
};

const advise = defineCommand({
  name: "advise",
  description:
    "rank codes, regions and cache sizes by latency, cost and nines, and compare the best with copies behind a CDN",
  summary: "rank codes, regions and cache sizes by latency, cost and nines",
  examples: [["lab advise samples/advice.json", "rank the choices for an example site"]],
  args: adviseArgs,
  withoutConfig: true,
  run: async (values) => (await import("./advise.ts")).adviseFor(values),
});

/** Arguments and options of `agarose lab bench`. */
export const benchArgs = {
  what: positional("[what]", "codec: compare the WASM codec with other implementations"),
  live: flag("read from the PoPs and buckets of the configuration, in a browser; stores objects and removes them"),
  rounds: valued("<count>", "rounds, of which the median is printed; with --live, reads of each size and path", {
    parse: parseCount({ min: 1 }),
    default: "15",
  }),
  // Two periods of a PoP, and the time until its isolates know.
  wait: valued("<duration>", "with --live: time for the PoPs to cache", {
    parse: parseDuration({ min: 0 }),
    default: "150s",
  }),
  largest: valued("<size>", "with --live: length of the largest objects", { parse: parseSize, default: "8MB" }),
  chromium: option("<path>", "with --live: the browser; default is that of Playwright"),
};

const bench = defineCommand({
  name: "bench",
  description: "measure from this machine: the codec, or with --live a deployment",
  examples: [
    ["lab bench codec", "compare codecs"],
    ["lab bench --live", "measure reads of your own deployment"],
  ],
  args: benchArgs,
  async run(values) {
    const { what, live, config } = values;
    if (live && what === undefined) return (await import("./bench/live.ts")).benchLive(values);
    if (live || what !== "codec") throw new AgaroseError("USAGE", "name what to measure: bench codec, or bench --live");
    if (config !== undefined) {
      throw new AgaroseError("USAGE", "`agarose bench codec` reads no configuration: leave --config out");
    }
    return (await import("./bench/codec.ts")).benchCodec(values);
  },
});

/** `agarose lab` and its verbs. Scripts call these without `lab`, too, which no help lists. */
export const command: CommandGroup = {
  name: "lab",
  category: "More",
  description: "solve, simulate, advise and bench: try caches and codes without risk",
  examples: [
    ["lab simulate access.log.gz", "compare caches on your own log"],
    ["lab bench --live", "measure reads of your own deployment"],
  ],
  commands: [solve, simulate, advise, bench],
};
