/**
 * Liu's online scheme at its best decay in hindsight, against `adaptive`: prints the table of
 * docs/internals/policies-measured.md. Caches change at each request, as in the paper. Some minutes.
 */

import { readFile } from "node:fs/promises";
import { parseScenario } from "@agarose/solver/internal/simulator/scenario/parse-scenario";
import { resolveExtends } from "@agarose/solver/internal/simulator/scenario/scenario";
import { simulate } from "@agarose/solver/internal/simulator/simulate";
import type { SimulationRow } from "@agarose/solver/internal/simulator/simulate";

const SCENARIOS = ["liu-three-sites", "agar-fitted", "five-together", "continental"];
const DECAYS = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 1];
/** The paper decays the counters of all objects once a minute. */
const EVERY_SECONDS = 60;

async function load(name: string): Promise<unknown> {
  return JSON.parse(await readFile(new URL(`../../solver/scenarios/${name}`, import.meta.url), "utf8"));
}

const ms = (value: number): string => value.toFixed(1);

console.log("| scenario | adaptive | online, decay 0.9 | online, best decay | adaptive against it | clairvoyant |");
console.log("| --- | --- | --- | --- | --- | --- |");
for (const name of SCENARIOS) {
  const json = (await resolveExtends(await load(`${name}.json`), load)) as Record<string, unknown>;
  // Each PoP by itself and exact chunks, because the scheme knows no other caches.
  const { systems: _systems, ...world } = json;
  const policies = [
    { name: "adaptive" },
    { name: "clairvoyant" },
    ...DECAYS.map((decay) => ({ name: "online", decay, everySeconds: EVERY_SECONDS })),
  ];
  const rows = simulate(parseScenario({ ...world, policies, decide: "request" })).filter(({ pop }) => pop === "all");
  const [adaptive, clairvoyant, ...online] = rows as [SimulationRow, SimulationRow, ...SimulationRow[]];
  const best = online.reduce((least, row) => (row.meanMs < least.meanMs ? row : least));
  const usual = online[DECAYS.indexOf(0.9)]!;
  const against = 100 * (adaptive.meanMs / best.meanMs - 1);
  console.log(
    `| ${name} | ${ms(adaptive.meanMs)} | ${ms(usual.meanMs)} | ${ms(best.meanMs)} (${DECAYS[online.indexOf(best)]}) | ` +
      `${against >= 0 ? "+" : ""}${against.toFixed(1)}% | ${ms(clairvoyant.meanMs)} |`,
  );
}
