/**
 * Walks, one at a time, and what the last one found.
 */
import { isRecord } from "@agarose/core/format";
import type { WalkTimes } from "@agarose/storage/maintenance/scrub/metrics";
import { totalsOf, type Totals } from "@agarose/storage/maintenance/scrub/totals";
import type { Position } from "./part.ts";

/** Bindings and secrets of a scrubber. The secrets that the configuration names are beside them. */
export interface ScrubberEnv {
  /** A Workflow, with the class `ScrubWalk`. */
  readonly SCRUB: WalkStarter;
  /** A KV namespace. */
  readonly STATE: StateStore;
  /** At least 16 characters; who asks for the state needs it. */
  readonly ADMIN_TOKEN?: string;
}

/** What of a Workflow binding is used. */
export interface WalkStarter {
  create(): Promise<{ readonly id: string }>;
  /** Rejects for an instance that is not there, or no longer. */
  get(id: string): Promise<{ status(): Promise<{ readonly status: string; readonly error?: unknown }> }>;
}

/** What of a KV namespace is used. */
export interface StateStore {
  get(name: string): Promise<string | null>;
  put(name: string, value: string): Promise<void>;
}

/** A walk that reached its end. */
export interface EndedWalk extends WalkTimes {
  readonly totals: Totals;
}

/** A walk that has not reached its end: where the next Workflow continues it. */
export interface OpenWalk {
  /** What it walks over. With other options, the next walk begins at the first key. */
  readonly prefix: string;
  readonly startMs: number;
  readonly position: Position;
}

const CURRENT = "current";
const LAST = "last";
const OPEN = "open";
/** A Workflow that is neither done nor given up. */
const ACTIVE = new Set(["queued", "running", "paused", "waiting", "waitingForPause"]);

/** Begins a walk, unless one is under way, and returns its id. */
export async function begin(env: ScrubberEnv): Promise<{ readonly id: string; readonly isNew: boolean }> {
  const current = await currentWalk(env);
  if (current && ACTIVE.has(current.status)) return { id: current.id, isNew: false };
  const { id } = await env.SCRUB.create();
  await env.STATE.put(CURRENT, id);
  return { id, isNew: true };
}

/** The walk that began last, and the state of its Workflow. Undefined when there was none, or its state is gone. */
export async function currentWalk(
  env: ScrubberEnv,
): Promise<{ readonly id: string; readonly status: string; readonly error?: unknown } | undefined> {
  const id = await env.STATE.get(CURRENT);
  if (id === null) return undefined;
  const instance = await env.SCRUB.get(id).catch(() => undefined);
  if (!instance) return undefined;
  const { status, error } = await instance.status();
  return { id, status, ...(error !== undefined && { error }) };
}

/** The last walk that reached its end. Undefined when there was none, or none that this version can read. */
export async function lastWalk(env: ScrubberEnv): Promise<EndedWalk | undefined> {
  const { totals: kept, startMs, endMs } = recordOf(await env.STATE.get(LAST));
  const totals = totalsOf(kept);
  return totals && typeof startMs === "number" && typeof endMs === "number" ? { totals, startMs, endMs } : undefined;
}

/** Keeps a walk that reached its end. */
export async function saveWalk(env: ScrubberEnv, walk: EndedWalk): Promise<void> {
  await env.STATE.put(LAST, JSON.stringify(walk));
  await env.STATE.put(OPEN, "null");
}

/** The walk that has not reached its end. Undefined when there is none, or none that this version can continue. */
export async function openWalk(env: ScrubberEnv): Promise<OpenWalk | undefined> {
  const { prefix, startMs, position } = recordOf(await env.STATE.get(OPEN));
  if (typeof prefix !== "string" || typeof startMs !== "number" || !isRecord(position)) return undefined;
  const { after, isEnd } = position;
  const totals = totalsOf(position["totals"]);
  if (!totals || typeof isEnd !== "boolean") return undefined;
  return { prefix, startMs, position: { ...(typeof after === "string" && { after }), totals, isEnd } };
}

/** What a value holds, which an earlier version of this Worker may have written. */
function recordOf(text: string | null): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(text ?? "null");
    return isRecord(json) ? json : {};
  } catch {
    return {};
  }
}

/**
 * Notes where a walk is. KV takes a write a second under one name and may refuse more, and then the note before counts:
 * objects are walked again, and none is left out.
 */
export async function noteWalk(env: ScrubberEnv, walk: OpenWalk): Promise<void> {
  await env.STATE.put(OPEN, JSON.stringify(walk)).catch(() => {});
}
