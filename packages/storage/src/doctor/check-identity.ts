/** Whether each bucket is that of its region only, and whether this machine has the keys that are in force. */
import { randomUUID } from "node:crypto";
import { toAgaroseError } from "@agarose/core";
import { succeeds } from "@agarose/core/async";
import { acceptUnsigned } from "@agarose/core/format";
import { announce, announcementOf, Fence, newestOf, readAll, type FenceContext } from "../commit/fence.ts";
import type { Store } from "../buckets/store.ts";
import type { Check } from "./check.ts";
import { PROBE_PREFIX } from "./check-region.ts";

const NAME = "identity";
const KEYS = "keys in force";

interface IdentityOptions {
  /** Whether to store what is missing: the records of regions that have none, and keys that were added. */
  readonly fix: boolean;
  /** Names of the regions that store objects now. The others, which may hang, are not looked into for marks. */
  readonly writable: readonly string[];
}

/** Looks into the buckets, and with `fix` mends what it can. Rejects only when the caller aborts. */
export async function checkIdentity(context: FenceContext, { fix, writable }: IdentityOptions): Promise<Check[]> {
  const stores = context.stores.filter(({ region }) => writable.includes(region.name));
  const shared = await sharedBuckets(stores, context.signal);
  if (shared.length > 0) return shared;
  const subject = "regions";
  try {
    if (fix) await mend(context);
    const regions = await readAll(context);
    // Without `fix`, nothing is written.
    if (regions.every(({ record }) => !record)) {
      const message = "no bucket has a control record yet: the first write stores them, and so does a fix";
      return [{ subject, name: NAME, state: "ok", message }];
    }
    const isComplete = regions.every(({ record }) => record);
    if (isComplete) await new Fence(context).check();
    const { epoch, signers } = newestOf(regions)!;
    const keys = signers.length === 0 ? "no key" : signers.join(", ");
    return [
      { subject, name: NAME, state: "ok", message: "each bucket belongs to one region" },
      { subject, name: KEYS, state: "ok", message: `epoch ${epoch}: ${keys}` },
    ];
  } catch (cause) {
    context.signal.throwIfAborted();
    const { code, message } = toAgaroseError(cause);
    // Regions that do not answer have findings of their own.
    if (code === "NO_QUORUM" || code === "CREDENTIALS_REFUSED") return [];
    const name = code === "REGION_MISPLACED" ? NAME : KEYS;
    return [{ subject, name, state: "fail", message: `${code}: ${message}` }];
  }
}

/** Gives regions their records, and puts the keys of the configuration into force where that takes nobody's away. */
async function mend(context: FenceContext): Promise<void> {
  const own = await announcementOf(context);
  // Objects from before the first key are unsigned.
  const trusting = { ...context, trust: acceptUnsigned };
  const before = newestOf(await readAll(trusting));
  if (before && before.signers.length === 0 && own.signers.length > 0) return announce(own, trusting);
  await new Fence(context).check();
  const current = newestOf(await readAll(context));
  if (current && own.signers.some((key) => !current.signers.includes(key))) await announce(own, context);
}

/** Stores a mark in each bucket, and looks for it in the others. */
async function sharedBuckets(stores: readonly Store[], signal: AbortSignal): Promise<Check[]> {
  const marks = stores.map((store) => ({ store, name: `${PROBE_PREFIX}${randomUUID()}-identity` }));
  const options = { bytes: 1, contentType: "application/octet-stream", signal };
  const stored = await Promise.all(
    marks.map(({ store, name }) => succeeds(store.put(name, new Uint8Array(1), options))),
  );
  const isThere = (store: Store, name: string): Promise<boolean> =>
    store.head(name, signal).then(
      (bytes) => bytes !== undefined,
      () => false,
    );
  const checks: Check[] = [];
  for (const [at, { store, name }] of marks.entries()) {
    if (!stored[at]) continue;
    for (const other of stores.slice(at + 1)) {
      if (!(await isThere(other, name))) continue;
      const message =
        `REGION_MISPLACED: ${store.region.name} and ${other.region.name} are one bucket, whose loss would be that of ` +
        "both: give each region its own bucket";
      checks.push({ subject: other.region.name, name: NAME, state: "fail", message });
    }
  }
  await Promise.all(marks.map(({ store, name }) => store.remove([name]).catch(() => {})));
  return checks;
}
