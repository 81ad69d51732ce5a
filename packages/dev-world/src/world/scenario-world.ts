/** Turns a scenario of the simulator into a local world. */
import { nominalBytes, type Scenario } from "@agarose/solver/simulator";
import { geographyOf } from "./geography.ts";
import type { WorldOptions } from "./world-options.ts";

/** Returns the options of a world with the places, latencies, noise, code and cache of a scenario. */
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
