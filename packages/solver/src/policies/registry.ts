/** Policies by the name a scenario gives them, with their settings checked. */

import { solverError } from "../errors.ts";
import { adaptive } from "./adaptive.ts";
import { agar } from "./agar.ts";
import { backend } from "./backend.ts";
import { clairvoyant } from "./clairvoyant.ts";
import { exact } from "./exact.ts";
import { gdsf } from "./gdsf.ts";
import { lfu } from "./lfu.ts";
import { lru } from "./lru.ts";
import { online } from "./online.ts";
import type { Policy, PolicyCache } from "./policy.ts";
import { wTinyLfu } from "./w-tinylfu.ts";

type Settings = Readonly<Record<string, unknown>>;
type Setting = {
  readonly default: unknown;
  readonly check: (value: unknown, k: number) => boolean;
  readonly is: string;
};

const ALPHA: Setting = { default: 0.8, check: (a) => inRange(a, 1e-9, 1), is: "above 0 and at most 1" };
const FLAG = (preset: boolean): Setting => ({
  default: preset,
  check: (flag) => typeof flag === "boolean",
  is: "true or false",
});
const CHUNKS: Setting = {
  default: undefined,
  check: (chunks, k) => Number.isInteger(chunks) && inRange(chunks, 1, k),
  is: "an integer from 1 to k",
};

interface Entry {
  readonly settings: Readonly<Record<string, Setting>>;
  readonly create: (cache: PolicyCache, settings: Settings) => Policy;
}

const POLICIES: Readonly<Record<string, Entry>> = {
  backend: { settings: {}, create: backend },
  lru: {
    settings: { chunks: CHUNKS },
    create: (cache, { chunks }) => lru(cache, (chunks as number | undefined) ?? cache.k),
  },
  lfu: {
    settings: { chunks: CHUNKS },
    create: (cache, { chunks }) => lfu(cache, (chunks as number | undefined) ?? cache.k),
  },
  gdsf: {
    settings: { chunks: CHUNKS },
    create: (cache, { chunks }) => gdsf(cache, (chunks as number | undefined) ?? cache.k),
  },
  "w-tinylfu": {
    settings: { chunks: CHUNKS },
    create: (cache, { chunks }) => wTinyLfu(cache, (chunks as number | undefined) ?? cache.k),
  },
  agar: {
    settings: { alpha: ALPHA, earlyStop: FLAG(false) },
    create: (cache, settings) => agar(cache, settings as { alpha: number; earlyStop: boolean }),
  },
  exact: { settings: { alpha: ALPHA }, create: (cache, { alpha }) => exact(cache, alpha as number) },
  online: {
    settings: {
      decay: { default: 0.9, check: (decay) => inRange(decay, 0, 1), is: "from 0 to 1" },
      everySeconds: { default: 60, check: (seconds) => inRange(seconds, 1e-3, Infinity), is: "above 0" },
    },
    create: (cache, { decay, everySeconds }) => online(cache, decay as number, everySeconds as number),
  },
  adaptive: { settings: {}, create: (cache) => adaptive(cache) },
  clairvoyant: { settings: {}, create: clairvoyant },
};

export const POLICY_NAMES: readonly string[] = Object.keys(POLICIES);

/** Throws SCENARIO_INVALID for an unknown name or setting, or a value out of range. */
export function createPolicy(name: string, cache: PolicyCache, given: Settings): Policy {
  const entry = POLICIES[name];
  if (!entry) {
    throw solverError("SCENARIO_INVALID", `no policy is named ${name}; there are ${POLICY_NAMES.join(", ")}`, { name });
  }
  const settings: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(entry.settings)) settings[key] = setting.default;
  for (const [key, value] of Object.entries(given)) {
    const setting = entry.settings[key];
    if (!setting) {
      const known = Object.keys(entry.settings).join(", ") || "none";
      throw solverError("SCENARIO_INVALID", `policy ${name} has no setting ${key}; it has ${known}`, { name, key });
    }
    if (!setting.check(value, cache.k)) {
      throw solverError("SCENARIO_INVALID", `${name}.${key} must be ${setting.is}, got ${String(value)}`, {
        name,
        key,
      });
    }
    settings[key] = value;
  }
  return entry.create(cache, settings);
}

function inRange(value: unknown, min: number, max: number): boolean {
  return typeof value === "number" && value >= min && value <= max;
}
