/**
 * Memory of a PoP on Node over half an hour, with its default settings: readers of cached and of new objects, ranges,
 * clients that leave, clients that take nothing, keys that do not exist, puts and periods.
 */
import { createConnection, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describeMachine } from "@agarose/dev-world/machine";
import { residentBytes } from "@agarose/dev-world/process-memory";
import { summarize, table } from "@agarose/dev-world/statistics";
import type { Bench, BenchOptions } from "../bench.ts";
import { startNodePop, type NodePop } from "./node-pop.ts";
import { runJob, startGenerator } from "./run-job.ts";

const MINUTES = 30;
const MINUTES_QUICK = 3;
const OBJECTS = 40;
const OBJECT_BYTES = 1_000_000;
/** New objects of each minute. */
const NEW_OBJECTS = 5;
const CONNECTIONS = 8;
const LOAD_SECONDS = 60;
const LEAVING_CLIENTS = 100;
const SLOW_CLIENTS = 50;
const UNKNOWN_KEYS = 100;
/** The last third may hold so much more than the second. */
const GROWTH_MAX = 1.1;

interface Minute {
  readonly requests: number;
  readonly p99Ms: number;
  readonly resident: number;
}

export const nodeSoak: Bench = {
  name: "pop-node-soak",
  title: "Memory of a PoP on Node over half an hour",
  async run(options) {
    const names = Array.from({ length: OBJECTS }, (_, i) => `${OBJECT_BYTES}-${i}`);
    const node = await startNodePop({ names });
    const generator = startGenerator();
    try {
      const minutes: Minute[] = [];
      const count = options.quick ? MINUTES_QUICK : MINUTES;
      while (minutes.length < count) {
        const fresh = Array.from({ length: NEW_OBJECTS }, (_, i) => `${OBJECT_BYTES}-${minutes.length}-${i}`);
        await node.put(fresh);
        const urls = [...names, ...fresh].flatMap((name) => [
          `${node.pop.url}/o/bench/${name}`,
          `${node.pop.url}/v1/read/bench/${name}`,
        ]);
        const troubles = trouble(node, names);
        const { requests, p99Ms } = await runJob(generator, { urls, connections: CONNECTIONS, seconds: LOAD_SECONDS });
        await troubles;
        await node.pop.runPeriod();
        minutes.push({ requests, p99Ms, resident: residentBytes(node.pop.process.pid!) ?? 0 });
        options.progress(lineOf(minutes.at(-1)!, minutes.length));
      }
      return describe(minutes, options);
    } finally {
      generator.kill();
      await node.close();
    }
  },
};

/** Clients that leave after their first bytes, clients that take nothing, and keys that do not exist. */
async function trouble({ pop }: NodePop, names: readonly string[]): Promise<void> {
  const { hostname, port } = new URL(pop.url);
  const ask = (name: string): Socket => {
    const socket = createConnection({ host: hostname, port: Number(port) });
    socket.on("error", () => {});
    socket.once("connect", () => socket.write(`GET /o/bench/${name} HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`));
    return socket;
  };
  const slow = Array.from({ length: SLOW_CLIENTS }, (_, i) => ask(names[i % names.length]!));
  for (let i = 0; i < LEAVING_CLIENTS; i++) {
    const socket = ask(names[i % names.length]!);
    socket.once("data", () => socket.destroy());
    await sleep(50);
  }
  const unknown = Array.from({ length: UNKNOWN_KEYS }, () => `${pop.url}/o/none/${crypto.randomUUID()}`);
  for (const url of unknown) await (await fetch(url)).arrayBuffer();
  for (const socket of slow) socket.destroy();
}

function lineOf({ requests, p99Ms, resident }: Minute, minute: number): string {
  return `minute ${minute}: ${requests} requests, p99 ${p99Ms.toFixed(0)} ms, ${(resident / 1e6).toFixed(0)} MB`;
}

function describe(minutes: readonly Minute[], { quick }: BenchOptions): string {
  const third = Math.floor(minutes.length / 3);
  const thirds = [0, 1, 2].map((n) => minutes.slice(n * third, (n + 1) * third));
  const medians = thirds.map((part) => summarize(part.map(({ resident }) => resident)).median);
  if (!quick && medians[2]! > GROWTH_MAX * medians[1]!) {
    throw new Error(`the PoP grows: ${medians.map((bytes) => (bytes / 1e6).toFixed(0)).join(", ")} MB by thirds`);
  }
  const rows = thirds.map((part, n) => [
    ["first", "second", "last"][n]!,
    String(part.reduce((sum, { requests }) => sum + requests, 0)),
    summarize(part.map(({ p99Ms }) => p99Ms)).median.toFixed(0),
    (medians[n]! / 1e6).toFixed(0),
    (Math.max(...part.map(({ resident }) => resident)) / 1e6).toFixed(0),
  ]);
  return [
    `A PoP with its default settings (256 MiB of memory for values) for ${minutes.length} rounds. In each, ` +
      `${CONNECTIONS} connections read ${OBJECTS} objects of 1 MB and ${NEW_OBJECTS} new ones for ${LOAD_SECONDS} s, through ` +
      `\`/o/\` and as bundles. Beside them ${LEAVING_CLIENTS} clients leave after their first bytes, ${SLOW_CLIENTS} take ` +
      `nothing, and ${UNKNOWN_KEYS} keys do not exist. A period ends each round. Memory is what the kernel counts as ` +
      `resident at the end of a round; the run fails when the last third has over ${Math.round(100 * (GROWTH_MAX - 1))}% more ` +
      `than the second.`,
    table(["third", "requests", "p99, ms, median", "resident, MB, median", "resident, MB, most"], rows),
    describeMachine(),
  ].join("\n\n");
}
