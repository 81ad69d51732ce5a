/** The bindings of a scrubber, and which Workflow leads the walk: one at a time. */
import type { Child, Ledger } from "./ledger.ts";

/** Bindings and secrets of a scrubber. The secrets that the configuration names are beside them. */
export interface ScrubberEnv {
  /** A Workflow, with the class `ScrubWalk`. */
  readonly SCRUB: WalkStarter;
  /** A Durable Object, with the class `ScrubState`. */
  readonly STATE: { getByName(name: string): LedgerStub };
  /** At least 16 characters; who asks for the state needs it. */
  readonly ADMIN_TOKEN?: string;
}

/** The part of a Workflow binding that is used. */
export interface WalkStarter {
  /** Rejects for an id that is there already, but not in a local world. */
  create(options: { readonly id: string; readonly params?: Child }): Promise<{ readonly id: string }>;
  /** Rejects for an instance that is not there, or no longer. */
  get(id: string): Promise<{ status(): Promise<{ readonly status: string; readonly error?: unknown }> }>;
}

/** The calls of a ledger. */
export type LedgerStub = Pick<Ledger, Exclude<keyof Ledger, "ctx" | "env">>;

/** A Workflow that is neither done nor given up. */
const ACTIVE = new Set(["queued", "running", "paused", "waiting", "waitingForPause"]);

/** The ledger of a deployment. */
export function ledgerOf(env: ScrubberEnv): LedgerStub {
  return env.STATE.getByName("walk");
}

/** The state of a Workflow. Undefined where there is none, or its state is gone. */
export async function stateOf(env: ScrubberEnv, id: string) {
  const instance = await env.SCRUB.get(id).catch(() => undefined);
  if (!instance) return undefined;
  const { status, error } = await instance.status();
  return { id, status, ...(error !== undefined && { error }), isActive: ACTIVE.has(status) };
}

/**
 * Makes the Workflow `id` lead the walk, unless another one does, and returns which one does now. `concurrency.limit`
 * of the binding would not do: a walk that is still under way would be followed by those that waited for it.
 */
export async function claim(env: ScrubberEnv, id: string): Promise<string> {
  const ledger = ledgerOf(env);
  const parent = await ledger.parent();
  if (parent === id || (parent !== undefined && (await stateOf(env, parent))?.isActive)) return parent;
  return ledger.claim(id, parent);
}
