/** A scenario as a Playwright test: the same places, latencies, noise, code and popularity, read by a real browser. */
import { nominalBytes, rankProbabilities, simulate, type Scenario } from "@agarose/solver/simulator";

/** So many objects keep a test below a minute. */
const OBJECTS_MAX = 12;
const READS = 32;
const BYTES_MAX = 1_000_000;
/** Enough that the first reads, with empty caches, do not count. */
const SIMULATED_READS = 4_000;
const PERIODS = 40;

/** What PoPs and service workers do when nothing is set. */
const DEFAULTS = {
  name: "defaults",
  policy: "adaptive",
  settings: {},
  read: { delta: 1, cachedChunks: "functional", dataChunksOnly: false, decodeMs: 0 },
  joint: true,
} as const;

/** Returns the source of the test. `file` is where the test finds the scenario. */
export function latencyTestOf(scenario: Scenario, file: string): string {
  const small = smallerOf(scenario);
  const { objects, pops } = small;
  const simulatedMs = Math.round(simulate(small)[0]!.meanMs);
  const name = JSON.stringify(`reads of ${scenario.name} take about as long as simulated`);
  return `// Written by \`agarose simulate ${file} --write-test\`. Change it as you like.
import { randomBytes } from "node:crypto";
import { expect, test } from "@agarose/dev-world/playwright";

test.use({
  worldOptions: { app: "app", geography: ${JSON.stringify(file)}, cacheBytes: ${digits(pops[0]!.capacityBytes!)} },
});

/** Of ${scenario.objects.count} in the scenario. The caches are smaller by as much. */
const OBJECTS = ${objects.count};
const BYTES = ${digits(objects.bytes as number)};
/** By the popularity of the scenario. */
const READS = [${sequenceOf(small).join(", ")}];
/** With what PoPs and service workers do by default. */
const SIMULATED_MEAN_MS = ${simulatedMs};
/** What the browser and a busy machine may add. */
const TOLERANCE = 2;

test(${name}, async ({ page, world, reads }) => {
  for (let object = 0; object < OBJECTS; object++) await world.put(\`simulated/\${object}\`, randomBytes(BYTES));
  await page.goto("/");
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
  const readAll = async (): Promise<void> => {
    for (const object of READS) {
      const status = await page.evaluate(async (url) => {
        const response = await fetch(url, { cache: "no-store" });
        await response.arrayBuffer();
        return response.status;
      }, \`/ec/simulated/\${object}\`);
      expect(status).toBe(200);
    }
  };
  await readAll();
  await world.cron();
  await world.cron();
  reads.clear();
  await readAll();
  const all = await reads.all();
  const meanMs = all.reduce((sum, { ms }) => sum + ms, 0) / all.length;
  const description = \`mean \${meanMs.toFixed(0)} ms, simulated \${SIMULATED_MEAN_MS} ms\`;
  test.info().annotations.push({ type: "latency", description });
  expect(meanMs).toBeLessThan(TOLERANCE * SIMULATED_MEAN_MS);
});
`;
}

/** As source code has it, such as 1_000_000. */
function digits(count: number): string {
  return count.toLocaleString("en").replaceAll(",", "_");
}

/** The scenario with few objects, caches of the same share, and one system. */
function smallerOf(scenario: Scenario): Scenario {
  const count = Math.min(OBJECTS_MAX, scenario.objects.count);
  const bytes = Math.min(BYTES_MAX, nominalBytes(scenario));
  const share = (count * bytes) / (scenario.objects.count * nominalBytes(scenario));
  const pops = scenario.pops.map(({ capacityChunks, capacityBytes, ...pop }) => {
    const whole = capacityBytes ?? capacityChunks! * Math.ceil(nominalBytes(scenario) / scenario.code.k);
    return { ...pop, capacityBytes: Math.round(whole * share) };
  });
  const perSecond = SIMULATED_READS / PERIODS / scenario.periodSeconds;
  return {
    ...scenario,
    runs: 1,
    objects: { count, bytes },
    pops,
    popularity: { ...scenario.popularity, shiftEverySeconds: 0, driftSwapsPerSecond: 0 },
    requests: { perSecond, count: SIMULATED_READS },
    decide: "period",
    events: [],
    systems: [DEFAULTS],
  };
}

/** The reads, spread evenly over the sequence: an object is read in proportion to its probability. */
function sequenceOf({ popularity, objects }: Scenario): number[] {
  const probabilities = rankProbabilities(popularity, objects.count);
  const due = Array.from(probabilities, () => 0);
  return Array.from({ length: READS }, () => {
    for (const [object, probability] of probabilities.entries()) due[object]! += probability;
    const next = due.indexOf(Math.max(...due));
    due[next]! -= 1;
    return next;
  });
}
