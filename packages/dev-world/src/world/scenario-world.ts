/** The local world in which a scenario's requests are made: its places, latencies, noise, code and cache. */
import { nominalBytes, type Scenario } from "@agarose/solver";
import { geographyOf } from "./geography.ts";
import type { WorldOptions } from "./world-options.ts";

/** What a scenario says of the world in which its requests are made. */
export function worldOf(scenario: Scenario): Partial<WorldOptions> {
  const { code, noise, pops } = scenario;
  const [{ regionMbitPerSecond = 0, capacityChunks, capacityBytes }] = pops as [Scenario["pops"][number]];

  return {
    geography: geographyOf(scenario),
    code,
    scale: 1,
    jitterSigma: noise.lognormalSigma,
    mbitPerSecond: regionMbitPerSecond,
    cacheBytes: capacityBytes ?? capacityChunks! * Math.ceil(nominalBytes(scenario) / code.k),
  };
}

/** Without the fields that were not given. */
export function given<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}
