/** A configuration against the world: buckets, layout, keys and PoPs. */
import { toAgaroseError } from "@agarose/core";
import {
  checkSurvival,
  chunkBytes,
  keyIdOf,
  rawPublicKey,
  roundRobin,
  spread,
  survives,
  type Code,
} from "@agarose/core/format";
import { openSettings } from "../buckets/stores.ts";
import type { Config } from "../config/config.ts";
import { signingKeyId } from "../config/signing.ts";
import { autoCodes, codesLine, keptRegions } from "../layout/object-layout.ts";
import { formatCount } from "../maintenance/amounts.ts";
import type { DeploymentParts } from "../parts.ts";
import { PopClient } from "../pops/pop-client.ts";
import { checkIdentity } from "./check-identity.ts";
import { checkRegion } from "./check-region.ts";
import type { Check } from "./check.ts";
import { fixRegion, type Fix, type FixedRegion, type FixOptions } from "./fix.ts";

interface DeploymentCheckOptions {
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

/** A warning in unsigned mode; a failure when readers would refuse what this machine signs. */
export async function checkSigning(config: Config): Promise<Check> {
  const { publicKeys, signing, unsigned } = config;
  const check = { subject: "publisher", name: "signing" };
  const warn = (message: string): Check => ({ ...check, state: "warn", message });
  if (unsigned) {
    return warn("every manifest is used, so who can write to one bucket decides what is read: run `agarose keys new`");
  }
  if (!publicKeys) {
    return warn(
      "buckets at addresses of this machine are read unsigned, and signed with the development key, which everyone " +
        "knows: if a tunnel or a proxy listens there, run `agarose keys new`",
    );
  }
  const trusted = `${formatCount(publicKeys.length, "public key")} trusted`;
  if (!signing) return { ...check, state: "ok", message: `${trusted}; nothing can be written without \`signing\`` };
  try {
    const keyId = await signingKeyId(config);
    const keyIds = await Promise.all(publicKeys.map((key) => keyIdOf(rawPublicKey(key) as Uint8Array<ArrayBuffer>)));
    if (keyIds.includes(keyId!)) return { ...check, state: "ok", message: `${trusted}, and one of them signs` };
    const message = `the key ${keyId} signs, and readers trust ${keyIds.join(", ")}: add it to \`publicKeys\``;
    return { ...check, state: "fail", message };
  } catch (error) {
    return { ...check, state: "fail", message: toAgaroseError(error).message };
  }
}

/** Checks whether every code of the configuration survives what `survive` promises. One check per code. Pure. */
export function checkLayout(config: Config): Check[] {
  const fixed = [config.code, ...config.codes.map(({ code }) => code)];
  const codes = new Map(fixed.flatMap((code) => (code === "auto" ? [] : [[`${code.k}+${code.m}`, code]])));
  return [
    ...(fixed.includes("auto") ? [checkAuto(config)] : []),
    ...[...codes.values()].map((code) => checkCode(code, config)),
  ];
}

function checkCode(code: Code, config: Config): Check {
  const { survive, stripeBytes } = config;
  const regions = keptRegions(config);
  const placement = roundRobin(code, regions, "");
  const actual = survives(code, placement, regions);
  const overhead = ((code.k + code.m) / code.k).toFixed(2);
  const shard = chunkBytes({ bytes: stripeBytes, stripeBytes, k: code.k });
  const found =
    `${code.k}+${code.m} over ${formatCount(regions.length, "region")} takes ${overhead}x storage (shards of ${shard} bytes) and survives ` +
    `the loss of ${formatCount(actual.regions, "region")}, or of ${formatCount(actual.providers, "provider")}`;
  return survival(() => {
    checkSurvival(code, placement, regions, survive);
    return found;
  });
}

function checkAuto(config: Config): Check {
  const { survive } = config;
  const regions = keptRegions(config);
  return survival(() => {
    const chosen = autoCodes(config);
    for (const { k, m, inline } of chosen.codes) {
      if (!inline) checkSurvival({ k, m }, spread({ k, m }, regions, ""), regions, survive);
    }
    return codesLine(chosen);
  });
}

/** @param check returns what was found, or throws. */
function survival(check: () => string): Check {
  try {
    return { subject: "layout", name: "survival", state: "ok", message: check() };
  } catch (error) {
    return { subject: "layout", name: "survival", state: "fail", message: toAgaroseError(error).message };
  }
}
