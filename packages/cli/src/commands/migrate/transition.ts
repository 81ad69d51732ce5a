/**
 * The configuration between two others: readers and writers know the regions of both, and those that the next one
 * leaves out are being emptied. Pure.
 */
import { isDeepStrictEqual } from "node:util";
import { AgaroseError } from "@agarose/core";
import { configOfFields, type Config, type RegionConfig } from "../../lib/config.ts";
import type { ConfigFields } from "../../lib/files/config-fields.ts";
import { majorityOf } from "../../lib/objects/commit/write-context.ts";

/** A configuration as its file has it. */
export interface ConfigFile {
  readonly path: string;
  readonly fields: ConfigFields;
  readonly config: Config;
}

/** From one configuration to the next. */
export interface Transition {
  /** The configuration in between, as a file has it, and checked. */
  readonly fields: ConfigFields;
  readonly config: Config;
  readonly added: readonly string[];
  /** Regions that are emptied, because the next configuration leaves them out. */
  readonly left: readonly string[];
  /** Whether the current configuration is the one in between already. */
  readonly hasBegun: boolean;
}

/** What a migration does not change, and the verb that does. */
const OTHERS: readonly (readonly [field: keyof Config, verb: string])[] = [
  ["publicKeys", "agarose keys rotate"],
  ["signing", "agarose keys rotate"],
  ["encryption", "agarose keys secret"],
];

/** Throws USAGE when one step cannot lead from `current` to `next`. */
export function transitionOf(current: ConfigFile, next: ConfigFile): Transition {
  for (const [field, verb] of OTHERS) {
    if (isDeepStrictEqual(current.config[field], next.config[field])) continue;
    throw usage(`\`${field}\` of ${next.path} is another one: migrate regions only, and change it with \`${verb}\``);
  }
  const before = new Map(current.config.regions.map((region) => [region.name, region]));
  const after = new Set(next.config.regions.map(({ name }) => name));
  for (const region of next.config.regions) checkPlace(region, before, current.config.regions);
  const left = current.config.regions.flatMap(({ name }) => (after.has(name) ? [] : [name]));
  const added = next.config.regions.flatMap(({ name }) => (before.has(name) ? [] : [name]));
  const draining = regionFields(current).flatMap((region) =>
    left.includes(region["name"] as string) ? [{ ...region, drain: true }] : [],
  );
  const fields = {
    ...next.fields,
    ...("providers" in current.fields && {
      providers: { ...(current.fields["providers"] as object), ...(next.fields["providers"] as object | undefined) },
    }),
    regions: [...regionFields(next), ...draining],
  };
  const config = configOfFields(fields, next.path);
  const hasBegun = isDeepStrictEqual(config, current.config);
  const all = before.size + added.length;
  if (!hasBegun) checkOverlap(before.size, all, "adds", added);
  checkOverlap(all, after.size, "leaves out", left);
  return { fields, config, added, left, hasBegun };
}

/** A name is that of a bucket, for as long as manifests name it. */
function checkPlace(
  region: RegionConfig,
  before: ReadonlyMap<string, RegionConfig>,
  regions: readonly RegionConfig[],
): void {
  const isThere = ({ endpoint, bucket }: RegionConfig): boolean =>
    endpoint === region.endpoint && bucket === region.bucket;
  const known = before.get(region.name);
  if (known && !isThere(known)) {
    throw usage(
      `region ${region.name} is bucket ${region.bucket} now and was ${known.bucket} at ${known.endpoint}: ` +
        "give the new bucket a name of its own, and leave the old region out",
    );
  }
  const other = known ? undefined : regions.find(isThere);
  if (!other) return;
  throw usage(
    `bucket ${region.bucket} is region ${other.name} and not ${region.name}: manifests have that name, so keep it`,
  );
}

/**
 * Whether every majority of `fromCount` regions meets every majority of `toCount`, of which the fewer are among the
 * more. Else a put that a majority has taken could be unknown to a majority of the others.
 */
function checkOverlap(fromCount: number, toCount: number, what: string, regions: readonly string[]): void {
  const most = Math.max(fromCount, toCount);
  const majorities = [fromCount, toCount].map((length) => majorityOf(Array.from({ length })));
  if (majorities[0]! + majorities[1]! > most) return;
  throw usage(
    `the migration ${what} ${regions.length} regions at once (${regions.join(", ")}), and a majority of ${toCount} regions ` +
      `could miss what ${majorities[0]} of ${fromCount} hold: take several migrations, with fewer regions each`,
  );
}

function regionFields({ fields }: ConfigFile): readonly ConfigFields[] {
  return fields["regions"] as readonly ConfigFields[];
}

function usage(message: string): AgaroseError {
  return new AgaroseError("USAGE", message);
}
