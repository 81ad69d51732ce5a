/** Creates policies by name, with checked settings. A new policy gets one entry here. */

import { solverError } from "../errors.ts";
import { adaptive } from "./adaptive/index.ts";
import { agar } from "./papers/agar.ts";
import type { AgarSettings } from "./papers/agar.ts";
import { backend } from "./backend.ts";
import { c2p } from "./papers/c2p.ts";
import type { C2pSettings } from "./papers/c2p.ts";
import { clairvoyant } from "./clairvoyant.ts";
import { exact } from "./exact.ts";
import { gdsf } from "./gdsf.ts";
import { lfu } from "./lfu.ts";
import { lru } from "./lru.ts";
import { online } from "./papers/online.ts";
import type { OnlineSettings } from "./papers/online.ts";
import type { Policy, PolicyCache } from "../policy/policy.ts";
import { SnapshotReader } from "../policy/snapshot.ts";
import { sprout } from "./papers/sprout/index.ts";
import { wTinyLfu } from "./w-tinylfu.ts";

type Settings = Readonly<Record<string, unknown>>;
type Setting = {
  readonly default: unknown;
  /** `k` is the largest k of all objects. */
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
  /** Reads all that its snapshot packed from `state`. */
  readonly create: (cache: PolicyCache, settings: Settings, state?: SnapshotReader) => Policy;
}

/** A policy that keeps the same number of chunks of every object: `chunks`, or all k. */
function withChunks(
  create: (cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader) => Policy,
): Entry {
  return {
    settings: { chunks: CHUNKS },
    create: (cache, { chunks = Infinity }, state) =>
      create(cache, (object) => Math.min(chunks as number, cache.kOf(object)), state),
  };
}

const POLICIES: Readonly<Record<string, Entry>> = {
  backend: { settings: {}, create: backend },
  lru: withChunks(lru),
  lfu: withChunks(lfu),
  gdsf: withChunks(gdsf),
  "w-tinylfu": withChunks(wTinyLfu),
  agar: {
    settings: { alpha: ALPHA, earlyStop: FLAG(false) },
    create: (cache, settings, state) => agar(cache, settings as unknown as AgarSettings, state),
  },
  exact: { settings: { alpha: ALPHA }, create: (cache, { alpha }, state) => exact(cache, alpha as number, state) },
  online: {
    settings: {
      decay: { default: 0.9, check: (decay) => inRange(decay, 0, 1), is: "from 0 to 1" },
      everySeconds: { default: 60, check: (seconds) => inRange(seconds, 1e-3, Infinity), is: "above 0" },
    },
    create: (cache, settings, state) => online(cache, settings as unknown as OnlineSettings, state),
  },
  sprout: { settings: { alpha: ALPHA }, create: (cache, { alpha }, state) => sprout(cache, alpha as number, state) },
  adaptive: { settings: {}, create: (cache, _settings, state) => adaptive(cache, state) },
  c2p: {
    settings: {
      affinitySeconds: { default: 30, check: (seconds) => inRange(seconds, 0, 1e9), is: "from 0 to 1e9" },
    },
    create: (cache, settings, state) => c2p(cache, settings as unknown as C2pSettings, state),
  },
  clairvoyant: { settings: {}, create: (cache, _settings, state) => clairvoyant(cache, state) },
};

/** The names that `createPolicy` accepts. */
export const POLICY_NAMES: readonly string[] = Object.keys(POLICIES);

/**
 * Creates a policy for `cache`, as new or in the state of `snapshot`. The cache keeps what it holds until the policy
 * decides otherwise. Throws SCENARIO_INVALID for an unknown name, an unknown setting or a value out of range. Throws
 * SNAPSHOT_INVALID for a malformed snapshot, one of another policy, or one of another number of objects.
 */
export function createPolicy(name: string, cache: PolicyCache, given: Settings = {}, snapshot?: Uint8Array): Policy {
  const entry = POLICIES[name];
  if (!entry) {
    throw solverError("SCENARIO_INVALID", `no policy has the name ${name}: choose one of ${POLICY_NAMES.join(", ")}`, {
      name,
    });
  }
  const kMax = (): number => {
    let most = 0;
    for (let o = 0; o < cache.objects; o++) most = Math.max(most, cache.kOf(o));
    return most;
  };
  const settings: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(entry.settings)) settings[key] = setting.default;
  for (const [key, value] of Object.entries(given)) {
    const setting = entry.settings[key];
    if (!setting) {
      const known = Object.keys(entry.settings).join(", ") || "none";
      throw solverError("SCENARIO_INVALID", `policy ${name} has no setting ${key}; it has ${known}`, { name, key });
    }
    if (!setting.check(value, kMax())) {
      throw solverError("SCENARIO_INVALID", `${name}.${key} must be ${setting.is}, got ${String(value)}`, {
        name,
        key,
      });
    }
    settings[key] = value;
  }
  if (!snapshot) return entry.create(cache, settings);
  const state = new SnapshotReader(name, cache.objects, snapshot);
  const policy = entry.create(cache, settings, state);
  state.end();
  return policy;
}

function inRange(value: unknown, min: number, max: number): boolean {
  return typeof value === "number" && value >= min && value <= max;
}
