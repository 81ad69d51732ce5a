/**
 * One read of one object. With a known plan it asks the edge and the buckets at once. Without one it asks the buckets
 * as soon as a plan arrives.
 */
import { isOutdated, toAgaroseError, type AgaroseError, type FetchPort } from "@agarose/core";
import { HAS_STORE } from "@agarose/core/features";
import { isSmall, type ReadReport } from "@agarose/core/read";
import { UNWANTED } from "@agarose/core/sources";
import type { ReadResponse } from "../common/http-response.ts";
import { forwardCredentials } from "./credentials.ts";
import { holdsWhole, plannedRead, rangeHeader, type Reading, type ReadPorts } from "./planned-read.ts";
import { isAnswer, type Bundle, type FullPlan } from "./plans/bundle-request.ts";
import { bucketSources, findPlan, knownPlan, offlinePlan, type FoundPlan } from "./plans/plan-source.ts";
import { discard } from "./plans/pop-call.ts";
import type { BegunRequest } from "./read-request.ts";
import { ReadTrace } from "./read-trace.ts";
import { Slot } from "./sources/fair-queue.ts";
import { guessSpan } from "./stripe-span.ts";

/**
 * Reads an object for a client. Resolves when the first stripe is ready.
 *
 * @param onOver called once when the response is over, with the reason if it failed or was given up; not when this
 *   rejects. The caller then aborts the signal, which ends the requests that are still under way.
 */
export async function clientRead(
  request: BegunRequest,
  ports: ReadPorts,
  onOver: (error?: unknown) => void,
): Promise<ReadResponse> {
  const { key, method, headers, signal } = request;
  const { memory, plans } = ports;
  const slot = new Slot(headers.get("priority"));
  const forward = forwardCredentials(request, ports.configuredPops);
  const trace = new ReadTrace(request, ports);
  const fetch: FetchPort = (url, init) => {
    const prioritized = { ...init, priority: slot.priority };
    return ports.fetch(...(forward?.(url, prioritized) ?? [url, prioritized]));
  };
  /** Set if this is one of many reads of whole objects. */
  const batches =
    method === "GET" && !headers.get("range") && !forward && ports.batches.joins() ? ports.batches : undefined;
  const asked = { key, signal, fetch, trace: trace.id, isPrivate: forward !== undefined };
  /** The response that was returned: the read ends when its body ends. */
  let returned: ReadResponse | undefined;
  const reading: Reading = {
    request,
    ports,
    trace,
    slot,
    asked,
    onEnd(response, bytes, report, error) {
      // A response that was not returned may be replaced by another attempt.
      if (response && response === returned) end(bytes, report, error);
    },
  };
  const fromPlan = async (found: FoundPlan): Promise<ReadResponse> => (await plannedRead(found, reading)).open();
  try {
    const known = plans.get(key);
    const isBatched = batches && known && isSmall(known.manifest) && !holdsWhole(known, memory);
    const found = known && !isBatched && knownPlan(known, ports);
    const response = (found && (await fromKnown(found))) || (await fromFresh(known));
    signal.throwIfAborted();
    returned = response;
    if (response.body === null) end(0);
    return response;
  } catch (cause) {
    // A page may give any reason for its leaving.
    const error = toAgaroseError(cause, signal.aborted ? "ABORTED" : undefined);
    trace.end(error.httpStatus, 0, undefined, error);
    throw error;
  }

  /** Asks the edge and the buckets at once. Undefined when too few chunks are there, or the read is left to the PoP. */
  async function fromKnown(found: FoundPlan): Promise<ReadResponse | undefined> {
    const read = await plannedRead(found, reading);
    if (read.isLeft()) return undefined;
    const stop = new AbortController();
    const changed = Promise.withResolvers<Bundle>();
    const opened = read.open(AbortSignal.any([signal, stop.signal]), read.call(changed.resolve));
    try {
      const first = await Promise.race([opened, changed.promise]);
      if ("status" in first) {
        void changed.promise.then(discard);
        return first;
      }
      // The object has changed before a byte was returned: continue with the new version's bundle.
      opened.then(({ body }) => body?.cancel()).catch(() => {});
      stop.abort(UNWANTED);
      return await fromPlan({ from: "edge", plan: first.plan, bundle: first });
    } catch (error) {
      void changed.promise.then(discard);
      if (toAgaroseError(error).code !== "NOT_ENOUGH_CHUNKS") throw error;
      plans.delete(key);
      return undefined;
    }
  }

  async function fromFresh(known: FullPlan | undefined): Promise<ReadResponse> {
    const store = HAS_STORE ? ports.store : undefined;
    const guessed = guessSpan(method, headers.get("range"));
    const kept = HAS_STORE && store ? (known ?? (await store.plan(key))) : known;
    // Stripes that the store holds need not be resent: ask for the plan only.
    const span = kept && store?.holds(kept.manifest, guessed) ? { from: 0, to: 0 } : guessed;
    const wanted = {
      ...asked,
      known: kept ?? plans.latest(key),
      span,
      range: rangeHeader(request, ports),
      batches: HAS_STORE && span !== guessed ? undefined : batches,
    };
    const found = await findPlan(wanted, ports).catch(async (error: AgaroseError) => {
      // The object is gone, or private now.
      if (store && isAnswer(error)) await store.purge((purged) => purged === key);
      return offlinePlan(error, kept, wanted);
    });
    try {
      return await fromPlan(found);
    } catch (error) {
      discard(found.bundle);
      if (!isOutdated(error)) throw error;
      // The PoP's manifest may name a version that is gone: the buckets decide.
      const current = await findPlan(wanted, ports, bucketSources(wanted, ports));
      if (current.plan.version === found.plan.version) throw error;
      return fromPlan(current);
    }
  }

  function end(bytes: number, report?: ReadReport, cause?: unknown): void {
    trace.end(returned!.status, bytes, report, cause);
    onOver(cause);
  }
}
