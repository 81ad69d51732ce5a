/**
 * The configuration between two others: readers and writers know the regions of both, and those that the next one
 * omits are being emptied. Pure.
 */
import { isDeepStrictEqual } from "node:util";
import { AgaroseError } from "@agarose/core";
import { configOfFields, type Config, type RegionConfig } from "../../config/config.ts";
import { majorityOf } from "../../commit/write-context.ts";

/** A configuration as its file has it, without defaults. */
export type ConfigFields = Readonly<Record<string, unknown>>;

/** A configuration and its file. */
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
  /** Regions that are emptied, because the next configuration omits them. */
  readonly left: readonly string[];
  /** The region that gets another name: the same bucket. */
  readonly renamed: { readonly from: string; readonly to: string } | undefined;
  /** Whether the current configuration is the one in between already. */
  readonly hasBegun: boolean;
}

/** Settings that a migration does not change, and the verb that does. */
const OTHERS: readonly (readonly [field: keyof Config, verb: string])[] = [
  ["publicKeys", "agarose keys rotate"],
  ["signing", "agarose keys rotate"],
  ["encryption", "agarose keys secret"],
];

/** Throws USAGE when one step cannot lead from `current` to `next`. */
export function transitionOf(current: ConfigFile, next: ConfigFile): Transition {
  for (const [field, verb] of OTHERS) {
    if (isDeepStrictEqual(current.config[field], next.config[field])) continue;
    throw usage(
      `\`${field}\` of ${next.path} differs from the present one: migrate regions only, and change it with \`${verb}\``,
    );
  }
  const before = new Map(current.config.regions.map((region) => [region.name, region]));
  const after = new Set(next.config.regions.map(({ name }) => name));
  for (const region of next.config.regions) checkPlace(region, before);
  const renamed = renamedOf(current, next);
  const left = current.config.regions.flatMap(({ name }) => (after.has(name) || name === renamed?.from ? [] : [name]));
  const added = next.config.regions.flatMap(({ name }) => (before.has(name) || name === renamed?.to ? [] : [name]));
  if (renamed && added.length + left.length > 0) {
    throw usage(
      `the migration renames ${renamed.from} to ${renamed.to}, and ` +
        `${added.length > 0 ? `adds ${added.join(", ")}` : `leaves out ${left.join(", ")}`}: rename in a separate migration`,
    );
  }
  const draining = regionFields(current).flatMap((region) =>
    left.includes(region["name"] as string) ? [{ ...region, drain: true }] : [],
  );
  const fields = {
    ...next.fields,
    ...("providers" in current.fields && {
      providers: { ...(current.fields["providers"] as object), ...(next.fields["providers"] as object | undefined) },
    }),
    regions: [
      ...regionFields(next).map((region) =>
        region["name"] === renamed?.to ? { ...region, formerly: renamed?.from } : region,
      ),
      ...draining,
    ],
  };
  const config = configOfFields(fields, next.path);
  const hasBegun = isDeepStrictEqual(config, current.config);
  const all = before.size + added.length;
  if (!hasBegun) checkOverlap(before.size, all, "adds", added);
  checkOverlap(all, after.size, "leaves out", left);
  return { fields, config, added, left, renamed, hasBegun };
}

/** A name is that of one bucket, for as long as manifests name it. */
function checkPlace(region: RegionConfig, before: ReadonlyMap<string, RegionConfig>): void {
  const known = before.get(region.name);
  if (!known || isSameBucket(known, region)) return;
  throw usage(
    `region ${region.name} is bucket ${region.bucket} now and was ${known.bucket} at ${known.endpoint}: ` +
      "give the new bucket's region a new name, and leave the old region out",
  );
}

/**
 * The region whose bucket has another name in `next`, or had until this migration began. One at a time, and nothing
 * beside it: readers ask the bucket under both names, so a minority that misses an object could outvote the others.
 */
function renamedOf(current: ConfigFile, next: ConfigFile): Transition["renamed"] {
  const all = next.config.regions.flatMap((region) => {
    if (region.formerly !== undefined) {
      throw usage(`region ${region.name} of ${next.path} has \`formerly\`: leave it out, a migration writes it`);
    }
    const known = current.config.regions.find((other) => isSameBucket(other, region));
    if (!known) return [];
    const from = known.name === region.name ? known.formerly : known.name;
    return from === undefined ? [] : [{ from, to: region.name, formerly: known.formerly }];
  });
  for (const { from, to, formerly } of all) {
    if (formerly === undefined || formerly === from) continue;
    throw usage(`region ${from} was ${formerly} before: finish that migration, then rename it to ${to}`);
  }
  const [first] = all;
  if (all.length <= 1) return first && { from: first.from, to: first.to };
  const pairs = all.map(({ from, to }) => `${from} to ${to}`).join(", ");
  throw usage(`the migration renames ${all.length} regions at once (${pairs}): rename them one after the other`);
}

function isSameBucket(a: RegionConfig, b: RegionConfig): boolean {
  return a.endpoint === b.endpoint && a.bucket === b.bucket;
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
