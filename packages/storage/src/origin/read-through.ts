/**
 * Reads, puts and removals of keys that only the origin may have: its object is adopted first. Below a rule of `keep`
 * it becomes a version of the history as any other.
 */
import { rm } from "node:fs/promises";
import { toAgaroseError, type Clock } from "@agarose/core";
import { parseKey, type Manifest } from "@agarose/core/format";
import { keepMsOf } from "../commit/history.ts";
import { makeTempFolder } from "../files/owned-files.ts";
import { readManifest, readRecord, type ReadHow } from "../objects/manifests.ts";
import { putObject, type PutObject, type PutResult } from "../objects/put-object.ts";
import { removeObject, type RemoveHow, type RemoveResult } from "../objects/remove-object.ts";
import type { DeploymentParts } from "../parts.ts";
import type { Origin } from "./http-origin.ts";
import { adoptObject } from "./adopt-object.ts";
import { listedNow } from "./origin-object.ts";
import { paceOf } from "../listing/pace.ts";

/** One adoption for all readers of a key. It ends with the last of them, unless `UnreadAdoptions` let it continue. */
interface Adoption {
  /** Whether the regions may know the key now. */
  readonly work: Promise<boolean>;
  /** Aborts it. The next reader begins another one. */
  end(): void;
  readers: number;
}

/** How long an adoption may continue without a reader, and how many of them may: each has a copy on disk. */
const UNREAD_MS_MAX = 15 * 60_000;
const UNREAD_MAX = 4;

/** The adoptions of a server that continue when their readers have left: a few, each for a bounded time. */
export class UnreadAdoptions {
  /** How to cancel the end of each. */
  readonly #ends = new Map<Adoption, () => void>();
  #isClosed = false;

  /** Whether the adoption, which its last reader has left, may continue. */
  keep(adoption: Adoption, clock: Clock): boolean {
    if (this.#ends.has(adoption)) return true;
    if (this.#isClosed || this.#ends.size >= UNREAD_MAX) return false;
    this.#ends.set(
      adoption,
      clock.after(UNREAD_MS_MAX, () => this.#drop(adoption)),
    );
    const ended = (): void => this.#drop(adoption);
    adoption.work.then(ended, ended);
    return true;
  }

  /** Stops all that nobody reads. Resolves when they have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const works = [...this.#ends.keys()].filter(({ readers }) => readers === 0).map(({ work }) => work);
    for (const adoption of this.#ends.keys()) this.#drop(adoption);
    await Promise.allSettled(works);
  }

  #drop(adoption: Adoption): void {
    this.#ends.get(adoption)?.();
    this.#ends.delete(adoption);
    if (adoption.readers === 0) adoption.end();
  }
}

/** Those under way, by key. */
const underWay = new WeakMap<Origin, Map<string, Adoption>>();

/**
 * `readManifest`, which adopts the object of the origin where the regions have neither an object nor a tombstone. It
 * throws as `readManifest` and `putObject` do, and SOURCE_FAILED or READ_TIMEOUT when the origin does not answer.
 *
 * @param unread lets an adoption continue that its readers have left. Default: it ends with them.
 */
export async function readOrAdopt(
  key: string,
  context: DeploymentParts,
  how: ReadHow = {},
  unread?: UnreadAdoptions,
): Promise<Manifest> {
  try {
    return await readManifest(key, context, how);
  } catch (cause) {
    const { origin } = context;
    // A generation is that of a tombstone.
    const { code, details } = toAgaroseError(cause);
    if (!origin || code !== "OBJECT_NOT_FOUND" || "generation" in details) throw cause;
    if (!(await adoptTogether(key, origin, context, unread))) throw cause;
    return readManifest(key, context, how);
  }
}

/** Adopts the object of the origin, if there is one, and returns whether the regions may know the key now. */
export async function adoptTogether(
  key: string,
  origin: Origin,
  context: DeploymentParts,
  unread?: UnreadAdoptions,
): Promise<boolean> {
  const { signal, clock } = context;
  signal.throwIfAborted();
  const running = underWay.get(origin) ?? new Map<string, Adoption>();
  underWay.set(origin, running);
  const adoption = running.get(key) ?? begin(key, origin, running, context);
  adoption.readers++;
  const left = Promise.withResolvers<never>();
  const leave = (): void => left.reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([adoption.work, left.promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    if (--adoption.readers === 0 && !unread?.keep(adoption, clock)) adoption.end();
  }
}

function begin(key: string, origin: Origin, running: Map<string, Adoption>, context: DeploymentParts): Adoption {
  const stop = new AbortController();
  const adoption: Adoption = {
    work: adoptNow(key, origin, { ...context, signal: stop.signal }),
    readers: 0,
    end() {
      if (running.get(key) === adoption) running.delete(key);
      stop.abort();
    },
  };
  running.set(key, adoption);
  adoption.work.then(adoption.end, adoption.end);
  return adoption;
}

async function adoptNow(key: string, origin: Origin, context: DeploymentParts): Promise<boolean> {
  const listed = await listedNow(key, origin, context.signal);
  if (!listed) return false;
  const folder = await makeTempFolder("adopt");
  try {
    const result = await adoptObject(listed, { origin, folder, pace: paceOf(undefined, context) }, context);
    if (result.outcome !== "failed") return true;
    // It is listed, and there is none: to readers it is as absent as any other.
    if (result.error.code === "OBJECT_NOT_FOUND") return false;
    throw result.error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * `putObject`, over the origin. Beside what that throws: SOURCE_FAILED, READ_TIMEOUT or REPLACED_MEANWHILE where the
 * origin does not say or give what it has, and nothing is put then.
 */
export async function putOverOrigin(object: PutObject, context: DeploymentParts): Promise<PutResult> {
  const { isAbsent, claim, ...others } = object;
  // A condition is on what the regions have, and its caller has looked at the origin.
  const isKnown = object.onlyIf !== undefined || object.etag !== undefined || claim?.survey.newest !== undefined;
  const isAdopted = !isKnown && (await adoptKept(object.key, isAbsent === true, context));
  return putObject(isAdopted ? others : object, context);
}

/** `removeObject` without a condition, over the origin. It throws as `putOverOrigin` and `removeObject` do. */
export async function removeOverOrigin(
  key: string,
  context: DeploymentParts,
  how: Pick<RemoveHow, "claim"> = {},
): Promise<RemoveResult | undefined> {
  // A batch claims what the regions have.
  if (!how.claim) await adoptKept(key, false, context);
  return removeObject(key, context, how);
}

/**
 * Adopts what only the origin has, where `keep` wants it. Returns whether the regions may know the key only since now.
 * Costs a read of the regions, and a listing of unknown keys.
 */
export async function adoptKept(key: string, isAbsent: boolean, context: DeploymentParts): Promise<boolean> {
  const { origin, config } = context;
  parseKey(key);
  if (!origin || keepMsOf(key, config) === 0) return false;
  if (!isAbsent && (await mayBeKnown(key, context))) return false;
  return adoptTogether(key, origin, context);
}

/** An unreadable object is for the writer to judge, because the origin cannot replace it. */
async function mayBeKnown(key: string, context: DeploymentParts): Promise<boolean> {
  const read = await readRecord(key, context, { isReadOnly: true }).catch(() => undefined);
  return read === undefined || read.record !== undefined;
}
