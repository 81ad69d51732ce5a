/** Where the parts of a PoP run, asked once by each isolate: none of them moves while the isolate lives. */
import { peerState } from "../peers/cooperation.ts";
import { findColo } from "../runtime/durable-objects.ts";
import { monitorColos } from "../popularity/monitor-shards.ts";
import { popState } from "../cache/pop-state-stub.ts";
import type { Env } from "./http.ts";
import { settingsOf } from "../runtime/settings.ts";

/** Data centers as airport codes; null where the platform does not say. */
export interface Place {
  readonly location: string;
  readonly worker: string | null;
  readonly popState: string | null;
  readonly requestMonitor: readonly (string | null)[];
  /** Null for a PoP on its own, too. */
  readonly peerState: string | null;
}

/** Null while the first answer is under way. */
const places = new WeakMap<Env, Place | null>();

/** Resolves to where the Worker that answers and the Durable Objects run; to null for a PoP without LOCATION. */
export async function findPlace(env: Env): Promise<Place | null> {
  const { location, peers } = settingsOf(env);
  if (location === undefined) return null;
  const [worker, state, requestMonitor, peerColo] = await Promise.all([
    findColo(),
    popState(env).colo(),
    monitorColos(env),
    peers ? peerState(env).colo() : null,
  ]);
  const place = { location, worker, popState: state, requestMonitor, peerState: peerColo };
  places.set(env, place);
  return place;
}

/** Returns what this isolate knows of its place, and null until it does; the first call asks, and waits for nothing. */
export function knownPlace(env: Env, waitUntil: (promise: Promise<unknown>) => void): Place | null {
  if (!places.has(env)) {
    places.set(env, null);
    // The next call asks again.
    waitUntil(findPlace(env).catch(() => places.delete(env)));
  }
  return places.get(env) ?? null;
}
