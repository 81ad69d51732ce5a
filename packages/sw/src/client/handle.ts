/** The response to a request for an object, for whatever listens to requests: this worker, or a router in it. */
import { errorResponse, toResponse, type ReadResponse } from "../common/http-response.ts";
import type { ReadRequest } from "./read-request.ts";
import { route, type RouteOptions } from "./routing.ts";

/**
 * Responds to a request for an object, or returns undefined for any other one. A read that fails before its first byte
 * has a response with an error status.
 *
 * @param event keeps the worker alive until the body is read.
 */
export type Handle = (request: Request, event?: KeptEvent) => Promise<Response> | undefined;

/** An ExtendableEvent. */
export interface KeptEvent {
  waitUntil(work: Promise<unknown>): void;
}

/** Answers a read, and calls `onEnd` when its body has ended. */
export type Answer = (request: ReadRequest, onEnd: () => void) => Promise<ReadResponse>;

/** Makes a `Handle` of what answers reads. */
export function handleBy(answer: Answer, routes: RouteOptions): Handle {
  return (request, event) => {
    const routed = route(request, routes);
    if (!routed) return undefined;
    const { promise, resolve: end } = Promise.withResolvers<void>();
    event?.waitUntil(promise);
    const { headers, signal } = request;
    const { method, query, key } = routed;
    return (async () => toResponse(await answer({ key: key(), method, headers, query, signal }, end)))().catch(
      (error: unknown) => {
        end();
        return errorResponse(error);
      },
    );
  };
}
