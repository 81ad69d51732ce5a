/**
 * Reads of whole objects and ranges through a PoP's `/o/`, for what this client cannot read itself: the nearest PoP is
 * asked first, and the next one when it fails, is late, or falls silent in the middle of a body.
 */
import { AgaroseError, toAgaroseError, type Clock } from "@agarose/core";
import { streamOf, within } from "@agarose/core/async";
import { HAS_MESSAGES } from "@agarose/core/features";
import { encodeKey } from "@agarose/core/format";
import { codingsOf } from "@agarose/core/http";
import { staggeredRace, UNWANTED, type Attempt } from "@agarose/core/sources";
import type { Endpoint } from "../common/config.ts";
import type { ReadResponse } from "../common/http-response.ts";
import { resumedResponse } from "../common/resumed-response.ts";
import { popId } from "./latency-tracker.ts";
import type { ReadPorts } from "./planned-read.ts";
import { errorIn } from "./plans/bundle-request.ts";
import { noSource } from "./plans/plan-source.ts";
import { POP_PATIENCE_MS_MAX } from "./plans/pop-call.ts";
import type { BegunRequest } from "./read-request.ts";

/** A PoP has this long to begin its answer. After `POP_PATIENCE_MS_MAX` the next one is asked, too. */
export const ANSWER_MS_MAX = 30_000;
/** A body that brings nothing for so long is continued from the next PoP. */
const SILENCE_MS_MAX = 5_000;

/** Headers of the request that decide its answer. */
const RANGED = ["range", "if-range"];
const SENT = ["if-none-match", "if-match", "if-modified-since", "if-unmodified-since", "authorization"];

type PopObjectPorts = Pick<ReadPorts, "fetch" | "clock" | "pops" | "latencies">;

/**
 * The answer of a PoP to `request`, be it the object or an error. Rejects with what the PoPs say is wrong, with
 * NO_SOURCE when none of them answers, or with ABORTED. The body continues on another PoP, with the same version.
 *
 * @param isCoded whether the object is known to be coded: ranges of coded bytes are none of what the network decodes.
 */
export async function readAtPops(
  request: BegunRequest,
  ports: PopObjectPorts,
  isCoded: boolean,
): Promise<ReadResponse> {
  const { signal, headers } = request;
  const names = [...(isCoded ? [] : RANGED), ...SENT];
  const own = Object.fromEntries([...headers].filter(([name]) => names.includes(name)));
  const ask = (rest: Record<string, string> = {}): Promise<Response> => askPops(request, { ...own, ...rest }, ports);
  const first = await ask();
  // Part of what is coded: the network cannot undo it.
  if (first.status === 206 && !isCoded && first.headers.get("etag")?.startsWith("W/")) {
    void first.body?.cancel().catch(() => {});
    return readAtPops(request, ports, true);
  }
  const { status, headers: found, body } = resumedResponse(first, ask, signal);
  return { status, headers: Object.fromEntries(found), body };
}

/** The first answer of a PoP about the object. */
function askPops(
  { key, method, query, signal }: BegunRequest,
  headers: Record<string, string>,
  { fetch, clock, pops, latencies }: PopObjectPorts,
): Promise<Response> {
  const attempts = pops.byDistance().map((pop): Attempt<Response> => {
    const abort = new AbortController();
    const fail = (): void => {
      if (!signal.aborted) latencies.failed(popId(pop.name));
      abort.abort(UNWANTED);
    };
    return {
      name: `PoP ${pop.name}`,
      patienceMs: POP_PATIENCE_MS_MAX,
      async start(own) {
        try {
          const url = `${pop.url}/o/${encodeKey(key)}?${query ?? ""}`;
          const init = { method, headers, signal: AbortSignal.any([own, abort.signal]) };
          const asked = fetch(url, init).then((response) => answerOf(response as Response, pop, clock, fail));
          return await unlessSilent(asked, ANSWER_MS_MAX, pop, clock);
        } catch (error) {
          // A PoP that says what is wrong with the object is in order itself.
          if (/SOURCE_FAILED|READ_TIMEOUT/.test(toAgaroseError(error, "SOURCE_FAILED").code)) fail();
          throw error;
        }
      },
    };
  });
  return staggeredRace(attempts, {
    clock,
    signal,
    afterFailure: () => "next",
    // A PoP's answer about the object is more useful than the failure of a different one.
    allFailed: (failures) =>
      failures.find(({ error }) => error.code !== "SOURCE_FAILED")?.error ?? noSource(key, failures),
    discard: ({ body }) => void body?.cancel().catch(() => {}),
  });
}

/**
 * The answer of a PoP, as the network has decoded it. Throws when the PoP, or something in its place, has failed. Its
 * body errors rather than wait for ever.
 *
 * @param onFailure called when the body breaks off, or is silent.
 */
async function answerOf(response: Response, pop: Endpoint, clock: Clock, onFailure: () => void): Promise<Response> {
  const { status, headers, body } = response;
  // Every answer of a PoP has its name: a captive portal answers with 200, too.
  if (headers.has("x-agarose-pop") && status < 500 && status !== 429) {
    const shown: Record<string, string> = Object.fromEntries(headers);
    // The network has undone the content coding already, so the answer is about the decoded bytes (`objectAnswer`).
    if (codingsOf(shown["content-encoding"]).length > 0) {
      for (const name of ["content-encoding", "content-length", "accept-ranges"]) delete shown[name];
      // An edge that codes by itself has made it weak already.
      shown["etag"] &&= shown["etag"].replace(/^"/, 'W/"');
    }
    const reader = body?.getReader();
    const next = (): Promise<ReadableStreamReadResult<Uint8Array<ArrayBuffer>>> =>
      unlessSilent(reader!.read(), SILENCE_MS_MAX, pop, clock).catch((error: unknown) => {
        onFailure();
        throw error;
      });
    const paced = reader ? streamOf(next, (reason) => reader.cancel(reason).catch(() => {})) : null;
    return new Response(paced, { status, headers: shown });
  }
  const error = await errorIn(response);
  const code = (headers.has("x-agarose-error") && error?.code) || "SOURCE_FAILED";
  throw new AgaroseError(code, HAS_MESSAGES && `PoP ${pop.name} answered ${status} (${code}): the next one is asked`, {
    pop: pop.name,
    status,
  });
}

/** `body`, and calls `onOver` once when it has ended; with a reason if it has failed or been given up. */
export function endOf(body: ReadableStream<Uint8Array>, onOver: (error?: unknown) => void): ReadableStream<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  body.pipeTo(writable).then(
    () => onOver(),
    // A consumer may leave without a reason.
    (error: unknown) => onOver(error ?? true),
  );
  return readable;
}

/** What `pop` gives, or READ_TIMEOUT after `timeoutMs`. */
function unlessSilent<T>(given: Promise<T>, timeoutMs: number, { name }: Endpoint, clock: Clock): Promise<T> {
  return within(given, timeoutMs, clock, () => {
    const problem = HAS_MESSAGES && `PoP ${name} sent nothing for ${timeoutMs} ms`;
    return new AgaroseError("READ_TIMEOUT", problem, { pop: name, timeoutMs });
  });
}
