/** The options of a scrubber, spelled as those of `agarose scrub`, and what of a configuration a Worker cannot use. */
import { AgaroseError } from "@agarose/core";
import type { Config } from "@agarose/storage/config/config";
import { parseDuration, parseMoney, parseRate, parseShare } from "@agarose/storage/maintenance/amounts";

/** The objects to check, and those to read in full. By default, all objects by their listings only. */
export interface ScrubberOptions {
  /** Only objects whose keys begin with this. */
  readonly prefix?: string;
  /** How often the schedule begins a walk, such as `1d`, its default. It decides what `age` reads in each walk. */
  readonly every?: string;
  /** Read another part of the objects in full in each walk, so that each is read within this, such as `30d`. */
  readonly age?: string;
  /** Read this share of the objects in full, at random, such as `1%`. */
  readonly sample?: string;
  /** Read no more of that than this on average, such as `10MB/s`. */
  readonly bandwidth?: string;
  /** Read no more of that in a walk than this many dollars buy, by `egressUsdPerGb`. */
  readonly budget?: string;
  /** Ranges of keys that are walked over side by side. Default: 16. */
  readonly concurrency?: number;
  /** Requests to buckets, after which a walk stops until the schedule continues it. Default: no limit. */
  readonly requests?: number;
  /** Objects of a part, which is one step of a Workflow. Default: 1,000. */
  readonly objectsPerPart?: number;
  /**
   * Steps of one Workflow. A range that needs more is continued by another Workflow. Default: 9,000, because Cloudflare
   * ends a Workflow at 10,000 steps unless its limit is raised.
   */
  readonly stepsMax?: number;
}

/** `ScrubberOptions`, parsed. `requests` is Infinity for no limit. */
export type Settings = ReturnType<typeof parseOptions>;

/** The whole numbers among the options: default, least and most. */
const NUMBERS = {
  concurrency: [16, 1, 1_000],
  requests: [Infinity, 1, Infinity],
  objectsPerPart: [1_000, 1, 100_000],
  // Of a parent: one for which walk, one to cut it, one to start ranges, one to see how they end.
  stepsMax: [9_000, 4, 25_000],
} as const;

/** Throws USAGE for an option that cannot be read, CONFIG_INVALID for a configuration that needs files or commands. */
export function parseOptions(options: ScrubberOptions, config: Config) {
  checkSources(config);
  const { prefix, every = "1d", age, sample, bandwidth, budget } = options;
  const numberOf = (name: keyof typeof NUMBERS): number => {
    const [none, min, max] = NUMBERS[name];
    const value = options[name] ?? none;
    if ((Number.isInteger(value) || value === none) && value >= min && value <= max) return value;
    throw new AgaroseError("USAGE", `${name} is ${value}: write a whole number from ${min} to ${max}`);
  };
  const everyMs = parseDuration()(every);
  return {
    ...(prefix !== undefined && { prefix }),
    everyMs,
    concurrency: numberOf("concurrency"),
    requests: numberOf("requests"),
    objectsPerPart: numberOf("objectsPerPart"),
    stepsMax: numberOf("stepsMax"),
    deep: {
      ...(age !== undefined && { ageMs: parseDuration()(age) }),
      everyMs,
      ...(sample !== undefined && { share: parseShare(sample) }),
      ...(bandwidth !== undefined && { bytesPerSecond: parseRate(bandwidth) }),
      ...(budget !== undefined && { usd: parseMoney(budget) }),
    },
  };
}

/** A Worker has its secrets as variables: it has no files, no profiles, and runs no commands. */
function checkSources({ credentials, providers, regions, signing, encryption }: Config): void {
  const ofKeys = [
    ["credentials", credentials],
    ...Object.entries(providers).map(([name, own]) => [`providers.${name}.credentials`, own.credentials] as const),
    ...regions.map(({ name, credentials: own }) => [`credentials of region ${name}`, own] as const),
  ] as const;
  for (const [field, source] of ofKeys)
    if (source && !("env" in source && source.env)) throw elsewhere(field, '{ "env": … }');
  if (signing && signing.environment === undefined) throw elsewhere("signing", '{ "environment": … }');
  for (const { prefix, secrets } of encryption) {
    const field = `encryption of ${JSON.stringify(prefix)}`;
    if (secrets.some(({ environment }) => environment === undefined)) throw elsewhere(field, '{ "environment": … }');
  }
}

function elsewhere(field: string, instead: string): AgaroseError {
  const message = `${field} names a file, a profile or a command, and a Worker has none: write ${instead}`;
  return new AgaroseError("CONFIG_INVALID", message, { field });
}
