/**
 * The fence between writers and a rotation. A writer acknowledges nothing by keys or secrets that are not in force any
 * more, nor into a bucket that is not the one that its configuration means.
 *
 * Before it acknowledges, it has read the control records of a majority at most `LEASE_MS` ago. Who takes a key out of
 * force writes the records first and then waits for that time: what is acknowledged afterwards is by the new keys.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { acceptUnsigned, isTombstone, type ManifestRecord } from "@agarose/core/format";
import type { Store } from "../buckets/store.ts";
import { askRegions, isConditionFailed, type Breaker } from "../regions/ask-regions.ts";
import {
  CONTROL_NAME,
  freshState,
  keysOf,
  readControl,
  sealControl,
  type ControlState,
  type RegionControl,
  type SecretsInForce,
} from "./control-record.ts";
import { ruleOf } from "./history.ts";
import { probe } from "./probe.ts";
import { majorityOf, sleep, type WriteContext, type WriterFence } from "./write-context.ts";
import { putRecord } from "../buckets/small-record.ts";

/** So long does a look at the records count. */
export const LEASE_MS = 5_000;
/** From this age on, the next look begins, so that it has ended when the last one counts no longer. */
const AHEAD_MS = LEASE_MS / 2;

/** Dependencies of a fence. */
export type FenceContext = Pick<WriteContext, "config" | "stores" | "signal" | "clock" | "trust" | "sign"> & {
  readonly breaker: Breaker;
};

/** A look at the records of all regions. */
interface Look {
  readonly startedMs: number;
  readonly state: Promise<ControlState>;
}

/** The permissions of writers of one configuration. */
export class Fence implements WriterFence {
  readonly #context: FenceContext;
  /** The look that began last. */
  #newest: Look | undefined;
  /** The last look that has ended. */
  #ended: Look | undefined;

  constructor(context: FenceContext) {
    this.#context = context;
  }

  /** Begins to read the records where the last look gets old, so that `check` need not wait for it. */
  prepare(): void {
    this.#current().catch(() => {});
  }

  /**
   * Resolves when this writer may acknowledge `record`; without one, when it may write at all.
   *
   * @param isContent whether the record brings new content, which has to be encrypted where a rule says so.
   * @throws KEYS_OUTDATED, REGION_MISPLACED, NO_QUORUM, CREDENTIALS_REFUSED or ABORTED.
   */
  async check(record?: ManifestRecord, isContent = false): Promise<void> {
    const { secrets } = await this.#current();
    if (!record || isTombstone(record)) return;
    const fitting = secrets.filter(({ prefix }) => record.key.startsWith(prefix));
    if (fitting.length === 0) return;
    const { key, encryption } = record;
    if (encryption ? fitting.some(({ ids }) => ids.includes(encryption.secret)) : !isContent) return;
    const own = encryption ? `the secret ${encryption.secret}` : "no secret";
    const wanted = ruleOf(key, fitting)!.ids;
    throw outdated(`${JSON.stringify(key)} has ${own} here, and ${wanted.join(" or ")} is in force for its prefix`, {
      key,
      secrets: wanted,
    });
  }

  #current(): Promise<ControlState> {
    const nowMs = this.#context.clock.now();
    const isYounger = (look: Look | undefined, ms: number): look is Look =>
      look !== undefined && nowMs - look.startedMs <= ms;
    if (!isYounger(this.#newest, AHEAD_MS)) this.#look(nowMs);
    return (isYounger(this.#ended, LEASE_MS) ? this.#ended : this.#newest!).state;
  }

  #look(startedMs: number): void {
    const look = { startedMs, state: this.#read() };
    this.#newest = look;
    look.state.then(
      () => {
        if (startedMs >= (this.#ended?.startedMs ?? startedMs)) this.#ended = look;
      },
      () => {
        // The records are reread after a failure.
        if (this.#newest === look) this.#newest = undefined;
      },
    );
  }

  async #read(): Promise<ControlState> {
    const context = this.#context;
    const regions = await readAll(context);
    const signer = await signerId(context);
    const newest = newestOf(regions);
    if (newest) refuseOutdated(newest, signer, context);
    const deployment = newest ?? freshState(context.config, signer);
    await createMissing(regions, deployment, context);
    return deployment;
  }
}

/** The first step of a change of the keys in force. */
export interface Announcement extends Pick<ControlState, "signers" | "signer"> {
  /** The secrets of the prefixes that change. */
  readonly secrets?: readonly SecretsInForce[];
}

/**
 * Puts other keys or secrets into force: raises the epoch in a majority of the regions. It also gives regions the name
 * that they have now. Writers that go by what was before may acknowledge until `untilFenced` resolves.
 *
 * @throws NO_QUORUM, KEYS_OUTDATED when a majority has records that this machine does not trust, REGION_MISPLACED,
 *   STORE_FAILED or CREDENTIALS_REFUSED.
 */
export async function announce(change: Announcement, context: FenceContext): Promise<void> {
  const regions = await readAll(context);
  const before = newestOf(regions) ?? freshState(context.config, await signerId(context));
  const { secrets: changed = [], ...keys } = change;
  const others = before.secrets.filter((rule) => changed.every(({ prefix }) => prefix !== rule.prefix));
  const back = keys.signers.filter((key) => before.retired.includes(key));
  if (back.length > 0) throw outdated(`the key ${back.join(", ")} is not in force any more`, { retired: back });
  const { deployment, epoch } = before;
  const gone = before.signers.filter((key) => !keys.signers.includes(key));
  const retired = [...new Set([...before.retired, ...gone])];
  const next: ControlState = { deployment, epoch: epoch + 1, ...keys, retired, secrets: [...others, ...changed] };
  const put = async ({ store, etag }: RegionControl, signal: AbortSignal): Promise<void> => {
    const bytes = await sealControl({ control: 1, region: store.region.name, ...next }, context.sign);
    await putRecord(store, CONTROL_NAME, bytes, { ...UNCACHED, ...conditionOf(etag), signal });
  };
  const needed = majorityOf(context.stores);
  const byStore = new Map(regions.map((region) => [region.store, region]));
  const outcomes = await askRegions(
    regions.map(({ store }) => store),
    (store, signal) => put(byStore.get(store)!, signal),
    { enough: needed },
    context,
  );
  const failed = outcomes.flatMap(({ error }) => error ?? []);
  const taken = outcomes.length - failed.length;
  if (taken < needed) {
    const message =
      `${taken} of ${context.stores.length} regions took the new keys in force, ${needed} are needed: run the command ` +
      `again once they answer. First error: ${failed[0]?.message}`;
    throw new AgaroseError("NO_QUORUM", message, { taken, needed }, failed[0]);
  }
}

/** Writes the name that a region has now into its record. One without a record gets it by the next write. */
export async function renameRegion(store: Store, context: FenceContext): Promise<void> {
  const { record, etag } = await readControl(store, context.signal, context.trust);
  if (!record || record.region === store.region.name) return;
  const { signature: _signature, ...content } = record;
  const bytes = await sealControl({ ...content, region: store.region.name }, context.sign);
  await putRecord(store, CONTROL_NAME, bytes, { ...UNCACHED, ...conditionOf(etag), signal: context.signal });
}

/** Resolves once every writer reads what was announced before this call, before it acknowledges anything. */
export function untilFenced(context: FenceContext): Promise<void> {
  return sleep(LEASE_MS, context);
}

/** The keys of `config`, for `announce`. */
export async function announcementOf(context: FenceContext): Promise<Announcement> {
  return keysOf(context.config, await signerId(context));
}

/** Reads the records. Throws where regions are not what the configuration says, or too few can be used. */
export async function readAll(context: FenceContext): Promise<RegionControl[]> {
  const { stores, trust } = context;
  const needed = majorityOf(stores);
  const outcomes = await askRegions(
    stores,
    (store, signal) => readControl(store, signal, trust),
    { enough: needed },
    context,
  );
  const regions = outcomes.flatMap(({ value }) => value ?? []);
  const failed = outcomes.flatMap(({ error }) => error ?? []);
  const refused = failed.find(({ code }) => code === "CREDENTIALS_REFUSED");
  if (refused) throw refused;
  if (regions.length < needed) {
    const message =
      `${regions.length} of ${stores.length} regions say which keys are in force, ${needed} are needed: nothing was ` +
      `written; try again once they answer. First error: ${failed[0]?.message}`;
    throw new AgaroseError("NO_QUORUM", message, { answered: regions.length, needed }, failed[0]);
  }
  refuseMisplaced(regions);
  const usable = regions.filter(({ problem }) => !problem).length;
  if (usable >= needed) return regions;
  const { problem } = regions.find((region) => region.problem)!;
  if (problem!.code === "MANIFEST_NEWER") throw problem!;
  throw outdated(`${usable} of ${stores.length} regions have a control record that this machine can use`, {
    usable,
    needed,
    first: problem!.message,
  });
}

/** The newest of what usable records say. A lower epoch that a region shows is from before. */
export function newestOf(regions: readonly RegionControl[]): ControlState | undefined {
  const records = regions.flatMap(({ record }) => record ?? []);
  return records.toSorted((a, b) => b.epoch - a.epoch)[0];
}

/** Every bucket has to be that of its region, and all of one deployment. */
function refuseMisplaced(regions: readonly RegionControl[]): void {
  const placed = regions.flatMap(({ store: { region }, record }) => (record ? [{ region, record }] : []));
  for (const { region, record } of placed) {
    if (record.region === region.name || record.region === region.formerly) continue;
    throw misplaced(
      `the bucket ${region.bucket} of region ${region.name} is that of region ${record.region}: correct \`endpoint\` ` +
        "and `bucket` of both. Two regions must not share a bucket, for its loss would be that of both",
      { region: region.name, is: record.region },
    );
  }
  const groups = [...Map.groupBy(placed, ({ record }) => record.deployment).values()];
  if (groups.length < 2) return;
  const strangers = groups
    .toSorted((a, b) => b.length - a.length)
    .slice(1)
    .flat();
  const names = strangers.map(({ region }) => region.name);
  throw misplaced(
    `the buckets of ${names.join(", ")} belong to another deployment than those of the other regions: correct their ` +
      "`endpoint` and `bucket`",
    { regions: names },
  );
}

function refuseOutdated({ signers, signer }: ControlState, own: string | undefined, { config }: FenceContext): void {
  const { publicKeys = [] } = config;
  if (signers.length === 0) return;
  if (publicKeys.length === 0) throw outdated("this machine signs nothing, and the deployment has keys", { signers });
  if (own !== undefined && !signers.includes(own)) {
    throw outdated(`this machine signs by the key ${own}, and ${signers.join(" or ")} is in force`, { own, signers });
  }
  const { signers: trusted } = keysOf(config, own);
  if (signer === undefined || trusted.includes(signer)) return;
  throw outdated(`the key ${signer} signs, and this machine does not trust it`, { signer, trusted });
}

/** Gives regions without a record theirs. One that cannot be written waits for the next writer. */
async function createMissing(
  regions: readonly RegionControl[],
  deployment: ControlState,
  context: FenceContext,
): Promise<void> {
  const missing = regions.filter(({ record, problem }) => !record && !problem).map(({ store }) => store);
  // An unsigned record would count for nobody, and stand in the way of the next writer that has the key.
  const isKeyless = context.config.publicKeys !== undefined && !context.sign;
  if (missing.length === 0 || isKeyless) return;
  const { deployment: id, epoch, signers, signer, retired, secrets } = deployment;
  const common = { deployment: id, epoch, signers, ...(signer !== undefined && { signer }), retired, secrets };
  const create = async (store: (typeof missing)[number], signal: AbortSignal): Promise<RegionControl> => {
    const bytes = await sealControl({ control: 1, region: store.region.name, ...common }, context.sign);
    const put = putRecord(store, CONTROL_NAME, bytes, { ...UNCACHED, ifNoneMatch: "*", signal });
    await put.catch((error: unknown) => {
      if (!isConditionFailed(error)) throw error;
    });
    // The present record shows whether a different region has this bucket, too.
    return readControl(store, signal, context.trust);
  };
  const outcomes = await askRegions(
    missing,
    create,
    { enough: Math.min(missing.length, majorityOf(context.stores)) },
    context,
  );
  refuseMisplaced([...regions, ...outcomes.flatMap(({ value }) => value ?? [])]);
}

/** The name of the key that signs here; undefined where none can. */
async function signerId({ config, sign }: FenceContext): Promise<string | undefined> {
  if (!config.publicKeys) return undefined;
  return (
    sign &&
    probe(sign).then(
      ({ keyId }) => keyId,
      (error: unknown) => {
        if (toAgaroseError(error).code === "CONFIG_INVALID") return undefined;
        throw error;
      },
    )
  );
}

const UNCACHED = { cacheControl: "no-cache" };

function conditionOf(etag: string | undefined): { ifMatch: string } | { ifNoneMatch: "*" } {
  return etag === undefined ? { ifNoneMatch: "*" } : { ifMatch: etag };
}

function outdated(problem: string, details: Record<string, unknown>): AgaroseError {
  const remedy =
    "nothing was written; give this machine the configuration of the last `agarose keys`. If this is the newer one, " +
    "have `agarose doctor` fix it here";
  return new AgaroseError("KEYS_OUTDATED", `${problem}: ${remedy}`, details);
}

function misplaced(problem: string, details: Record<string, unknown>): AgaroseError {
  const message = `${problem}. A bucket that was emptied, and is to be another region, needs its ${CONTROL_NAME} removed`;
  return new AgaroseError("REGION_MISPLACED", message, details);
}

/** The keys that a step of a rotation puts into force. */
export interface KeysStep {
  /** Default: the keys of the configuration. */
  readonly change?: Partial<Announcement>;
  /** Whether the configuration has just got its first key: what the buckets said until now is signed by nobody. */
  readonly isFirst?: boolean;
  /** Whether to wait until no writer can go by what was before. Default: false. */
  readonly waits?: boolean;
}

/** Throws as `announce` does; KEYS_OUTDATED also for a first key where the deployment has one already. */
export async function putInForce(
  { change = {}, isFirst = false, waits = false }: KeysStep,
  parts: FenceContext,
): Promise<void> {
  const context: FenceContext = isFirst ? { ...parts, trust: acceptUnsigned } : parts;
  if (isFirst) await refuseSigned(context);
  await announce({ ...(await announcementOf(context)), ...change }, context);
  if (waits) await untilFenced(context);
}

/** A key that this machine has never had must not go out of force by its hand. */
async function refuseSigned(context: FenceContext): Promise<void> {
  const { signers = [] } = newestOf(await readAll(context)) ?? {};
  if (signers.length === 0) return;
  const message =
    `${signers.join(" and ")} signs in these buckets, and this configuration has never had that key: nothing was changed ` +
    "in them, and they take no write by the new key. Use the configuration and the key of their deployment, where " +
    "`agarose keys rotate` replaces it, or name other buckets";
  throw new AgaroseError("KEYS_OUTDATED", message, { signers });
}
