/** Does for each region what its findings ask for, and checks it again. */
import { setTimeout } from "node:timers/promises";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { CHUNK_PREFIX, MANIFEST_PREFIX } from "@agarose/core/format";
import { CLAIM_PREFIX, CONTROL_PREFIX, GARBAGE_PREFIX, HISTORY_PREFIX, REPAIR_PREFIX } from "../commit/names.ts";
import type { BucketSettings } from "../buckets/bucket-settings.ts";
import { PROBE_PREFIX } from "./check-region.ts";
import type { Check, Remedy } from "./check.ts";
import { publicReadPolicy } from "../buckets/public-read.ts";
import { withPublicReads, withReadRule } from "./merge-settings.ts";

/** The outcome of a remedy. */
export interface Fix {
  /** The region. */
  readonly subject: string;
  readonly remedy: Remedy;
  /** `planned`: with `dryRun`. `kept`: the bucket has it already. */
  readonly outcome: "fixed" | "planned" | "kept" | "failed";
  /** The action, or the failure and the steps by hand. */
  readonly message: string;
  /** Why it failed. */
  readonly error?: AgaroseError;
}

/** Dependencies of fixes. */
export interface FixOptions {
  /** The web app's origin, which CORS is set for; `*` for any. */
  readonly origin: string;
  readonly dryRun: boolean;
  /** The file that keeps prefixes of keys private at the PoPs. A bucket is not made public beside one. */
  readonly guardedBy?: string | undefined;
  readonly signal: AbortSignal;
}

/** The findings of a region after the last fix, and the fixes in their order. */
export interface FixedRegion {
  readonly checks: readonly Check[];
  readonly fixes: readonly Fix[];
}

const OWN_PREFIXES = [
  MANIFEST_PREFIX,
  CHUNK_PREFIX,
  CLAIM_PREFIX,
  REPAIR_PREFIX,
  CONTROL_PREFIX,
  GARBAGE_PREFIX,
  HISTORY_PREFIX,
  PROBE_PREFIX,
];
/** Stores may take some seconds to obey new settings. */
const RECHECKS = 3;
const RECHECK_MS = 2_000;

/**
 * Checks a region, does each remedy that its findings name once, and checks again. A bucket that was just made may need
 * more, so this continues until no finding names another remedy. Never rejects for what a store answers.
 */
export async function fixRegion(
  check: () => Promise<Check[]>,
  settings: BucketSettings,
  options: FixOptions,
): Promise<FixedRegion> {
  const fixes = new Map<Remedy, Fix>();
  let checks = await check();
  for (;;) {
    const remedies = remediesOf(checks).filter((remedy) => !fixes.has(remedy));
    if (remedies.length === 0) return { checks, fixes: [...fixes.values()] };
    for (const remedy of remedies) fixes.set(remedy, await attempt(remedy, settings, options));
    const isChanged = remedies.some((remedy) => ["fixed", "kept"].includes(fixes.get(remedy)!.outcome));
    if (isChanged) checks = await checkAgain(check, remedies, fixes, options.signal);
  }
}

function remediesOf(checks: readonly Check[]): Remedy[] {
  return [...new Set(checks.flatMap(({ remedy }) => remedy ?? []))];
}

/** Waits for the store to obey what was fixed, for a few seconds at most. */
async function checkAgain(
  check: () => Promise<Check[]>,
  remedies: readonly Remedy[],
  fixes: ReadonlyMap<Remedy, Fix>,
  signal: AbortSignal,
): Promise<Check[]> {
  for (let recheck = 1; ; recheck++) {
    const checks = await check();
    const left = remediesOf(checks).filter((one) => remedies.includes(one) && fixes.get(one)!.outcome === "fixed");
    if (left.length === 0 || recheck === RECHECKS) return checks;
    await setTimeout(RECHECK_MS, undefined, { signal });
  }
}

async function attempt(remedy: Remedy, settings: BucketSettings, options: FixOptions): Promise<Fix> {
  const fix = { subject: settings.region.name, remedy };
  try {
    return { ...fix, ...(await REMEDIES[remedy].run(settings, options)) };
  } catch (cause) {
    options.signal.throwIfAborted();
    const error = toAgaroseError(cause, "STORE_FAILED");
    const message = `${error.code}: ${error.message}; by hand: ${REMEDIES[remedy].byHand(settings, options)}`;
    return { ...fix, outcome: "failed", message, error };
  }
}

type Done = Pick<Fix, "outcome" | "message">;

const REMEDIES: Record<
  Remedy,
  {
    readonly run: (settings: BucketSettings, options: FixOptions) => Promise<Done>;
    readonly byHand: (settings: BucketSettings, options: FixOptions) => string;
  }
> = {
  "make bucket": {
    async run(settings, { dryRun }) {
      const where = `${settings.region.bucket} at ${settings.region.endpoint}`;
      if (dryRun) return { outcome: "planned", message: `make ${where}, then check its settings` };
      return (await settings.make())
        ? { outcome: "fixed", message: `made ${where}` }
        : { outcome: "kept", message: `${where} is there by now` };
    },
    byHand: ({ region: { bucket, awsRegion } }) => `make the bucket ${bucket} in ${awsRegion}, or correct \`bucket\``,
  },
  "set CORS": {
    async run(settings, { origin, dryRun }) {
      const rules = await settings.corsRules();
      const merged = withReadRule(rules, origin);
      if (!merged)
        return { outcome: "kept", message: `its rules let ${origin} read already: check what \`url\` serves` };
      const added = `${JSON.stringify(merged.filter((rule) => !rules.includes(rule)))} in addition to ${rules.length} rules`;
      if (dryRun) return { outcome: "planned", message: `add ${added}` };
      await settings.setCorsRules(merged);
      return { outcome: "fixed", message: `added ${added}` };
    },
    byHand: (_settings, { origin }) => `give the bucket the CORS rule ${JSON.stringify(withReadRule([], origin))}`,
  },
  "allow public reads": {
    async run(settings, options) {
      await refusePublic(settings, options);
      const { bucket } = settings.region;
      const merged = withPublicReads(await settings.policy(), bucket);
      if (merged === undefined) {
        return { outcome: "kept", message: "its policy allows them already: look for what denies them" };
      }
      const what = `anyone reads the objects of ${bucket}; other statements of its policy stay`;
      if (options.dryRun) return { outcome: "planned", message: what };
      await settings.setPolicy(merged);
      return { outcome: "fixed", message: what };
    },
    byHand: ({ region: { bucket } }) =>
      `give the bucket the policy ${publicReadPolicy(bucket)}. On S3, turn off "Block public access" first. On R2, ` +
      "enable public access instead. For private objects, set `private` for the region",
  },
};

/** Throws CONFIG_INVALID for a bucket whose objects are, or may be, meant for some readers alone. */
async function refusePublic(settings: BucketSettings, { guardedBy }: FixOptions): Promise<void> {
  const { name: region, bucket, private: isPrivate } = settings.region;
  const refuse = (why: string): never => {
    throw new AgaroseError("CONFIG_INVALID", `${bucket} is not made public, because ${why}`, { region, bucket });
  };
  if (isPrivate) refuse("its region is private");
  if (guardedBy !== undefined) refuse(`${guardedBy} keeps keys private with PRIVATE_PREFIXES`);
  const others = (await settings.topNames()).filter((name) => !OWN_PREFIXES.includes(name));
  if (others.length > 0) refuse(`it holds ${others.length} other names, such as ${others[0]}`);
}
