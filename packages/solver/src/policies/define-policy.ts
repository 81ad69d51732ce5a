/** The definition of a policy besides its code: a name, and settings with their types, defaults and bounds. */
import { SolverError } from "../errors.ts";
import type { Policy, PolicyCache } from "../policy/policy.ts";
import { SnapshotReader } from "../policy/snapshot.ts";

/** One setting of a policy. */
export interface Setting<T> {
  readonly default: T;
  /** Whether a value is allowed; `k` is the largest k of all objects. */
  readonly allows: (value: unknown, k: number) => boolean;
  /** The bounds in words, as they follow "must be". */
  readonly is: string;
}

/** A policy of the registry. */
export interface PolicyDefinition {
  readonly name: string;
  /** As `createPolicy`, without the name. */
  readonly create: (
    cache: PolicyCache,
    given: Readonly<Record<string, unknown>>,
    snapshot: Uint8Array | undefined,
  ) => Policy;
}

/** Defines a policy. `create` gets all settings, checked, and reads all that its snapshot packed from `state`. */
export function definePolicy<Settings extends object>(definition: {
  readonly name: string;
  readonly settings: { readonly [Name in keyof Settings]: Setting<Settings[Name]> };
  readonly create: (cache: PolicyCache, settings: Settings, state?: SnapshotReader) => Policy;
}): PolicyDefinition {
  const { name } = definition;
  const known = new Map<string, Setting<unknown>>(Object.entries(definition.settings));
  const create: PolicyDefinition["create"] = (cache, given, snapshot) => {
    const values = new Map(Array.from(known, ([key, setting]) => [key, setting.default]));
    for (const [key, value] of Object.entries(given)) {
      const setting = known.get(key);
      if (!setting) {
        const names = Array.from(known.keys()).join(", ") || "none";
        throw new SolverError("SCENARIO_INVALID", `policy ${name} has no setting ${key}; it has ${names}`, {
          name,
          key,
        });
      }
      if (!setting.allows(value, largestK(cache))) {
        const message = `${name}.${key} must be ${setting.is}, got ${String(value)}`;
        throw new SolverError("SCENARIO_INVALID", message, { name, key });
      }
      values.set(key, value);
    }
    const settings = Object.fromEntries(values) as Settings;
    if (!snapshot) return definition.create(cache, settings);
    const state = new SnapshotReader(name, cache.objects, snapshot);
    const policy = definition.create(cache, settings, state);
    state.end();
    return policy;
  };
  return { name, create };
}

/** A setting that is a number from `min` to `max`. */
export function numeric(preset: number, min: number, max: number, is: string): Setting<number> {
  return { default: preset, allows: (value) => typeof value === "number" && value >= min && value <= max, is };
}

function largestK(cache: PolicyCache): number {
  let most = 0;
  for (let o = 0; o < cache.objects; o++) most = Math.max(most, cache.kOf(o));
  return most;
}

const CHUNKS: Setting<number> = {
  default: Infinity,
  allows: (chunks, k) => Number.isInteger(chunks) && (chunks as number) >= 1 && (chunks as number) <= k,
  is: "an integer from 1 to k",
};

/** A policy that keeps the same number of chunks of every object: `chunks`, or all k. */
export function withChunks(
  name: string,
  create: (cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader) => Policy,
): PolicyDefinition {
  return definePolicy({
    name,
    settings: { chunks: CHUNKS },
    create: (cache, { chunks }, state) => create(cache, (object) => Math.min(chunks, cache.kOf(object)), state),
  });
}

/** A policy without settings. */
export function plain(name: string, create: (cache: PolicyCache, state?: SnapshotReader) => Policy): PolicyDefinition {
  return definePolicy({ name, settings: {}, create: (cache, _settings, state) => create(cache, state) });
}
