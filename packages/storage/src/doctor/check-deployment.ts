/** A configuration against the world: buckets, layout, keys and PoPs. */
import { toAgaroseError } from "@agarose/core";
import { openSettings } from "../buckets/stores.ts";
import type { Config } from "../config/config.ts";
import type { DeploymentParts } from "../parts.ts";
import { PopClient } from "../pops/pop-client.ts";
import { checkIdentity } from "./check-identity.ts";
import { checkLayout } from "./check-layout.ts";
import { checkRegion } from "./check-region.ts";
import { checkSigning } from "./check-signing.ts";
import type { Check } from "./check.ts";
import { fixRegion, type Fix, type FixedRegion, type FixOptions } from "./fix.ts";

/** The parts to check, and whether to fix them. */
export interface DeploymentCheckOptions {
  /** The web app's origin, which CORS is checked and set for. Default: any. */
  readonly origin?: string | undefined;
  /** Whether pages of that origin are to store objects. Default: false. */
  readonly uploads?: boolean | undefined;
  /** How to mend buckets and control records. Default: nothing is mended. */
  readonly fix?: Pick<FixOptions, "dryRun" | "guardedBy"> | undefined;
}

/** Checks everything, and with `fix` mends what it can. Rejects only when the caller aborts. */
export async function checkDeployment(
  context: DeploymentParts,
  options: DeploymentCheckOptions,
): Promise<{ readonly checks: readonly Check[]; readonly fixes?: readonly Fix[] }> {
  const { config, signal } = context;
  const [layout, signing, regions, pops] = await Promise.all([
    checkLayout(config),
    checkSigning(config),
    checkRegions(context, options),
    checkPops(config.pops, signal),
  ]);
  // After the buckets are made.
  const isWritable = ({ name, state }: Check): boolean => name === "write" && state === "ok";
  const writable = regions.flatMap(({ checks }) => checks.filter(isWritable).map(({ subject }) => subject));
  const identity = await checkIdentity(context, { fix: options.fix?.dryRun === false, writable });
  const found = [...layout, signing, ...identity, ...regions.flatMap(({ checks }) => checks), ...pops];
  const fixes = options.fix && { fixes: regions.flatMap((region) => region.fixes) };
  return { checks: [...refusedEverywhere(found, config), ...found], ...fixes };
}

/** Checks every region, and with `fix` mends it. */
async function checkRegions(
  { config, stores, signal, nowMs }: DeploymentParts,
  { origin, uploads, fix }: DeploymentCheckOptions,
): Promise<FixedRegion[]> {
  const regionOptions = { ...(origin && { origin }), uploads, fetch, nowMs, signal };
  if (!fix) {
    return Promise.all(stores.map(async (store) => ({ checks: await checkRegion(store, regionOptions), fixes: [] })));
  }
  const fixOptions = { ...fix, origin: origin ?? "*", signal };
  const settings = openSettings(config, { attempts: 3 }, signal);
  try {
    return await Promise.all(
      stores.map((store, at) => fixRegion(() => checkRegion(store, regionOptions), settings[at]!, fixOptions)),
    );
  } finally {
    for (const one of settings) one.close();
  }
}

/** One plain sentence when no region takes its keys: then the keys are wrong, and nothing else was checked. */
function refusedEverywhere(checks: readonly Check[], { regions }: Config): Check[] {
  const refused = checks.filter(
    ({ name, message }) => name === "credentials" && message.startsWith("CREDENTIALS_REFUSED"),
  );
  if (refused.length < regions.length) return [];
  const message =
    `${regions.length === 1 ? "the region" : `all ${regions.length} regions`} refused the keys, so nothing else was ` +
    "checked: check where the keys come from, that they are not expired, and the clock of this machine";
  return [{ subject: "configuration", name: "credentials", state: "fail", message }];
}

function checkPops(pops: Config["pops"], signal: AbortSignal): Promise<Check[]> {
  return Promise.all(
    pops.map(async (pop): Promise<Check> => {
      const check = { subject: pop.name, name: "health" };
      try {
        await new PopClient(pop, { signal }).health();
        return { ...check, state: "ok", message: `${pop.url} answers` };
      } catch (error) {
        signal.throwIfAborted();
        return { ...check, state: "fail", message: toAgaroseError(error, "SOURCE_FAILED").message };
      }
    }),
  );
}
