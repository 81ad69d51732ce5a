/** `fetch` for libraries that take one as an option: as `fetch`, but the bodies of objects outlive their worker. */
import { resumedResponse } from "../common/resumed-response.ts";

/**
 * Behaves as `fetch`, for libraries that take one. The body of an object continues if the browser ends the worker: the
 * rest comes from the next one. Errors stay answers with a status, unlike those of `fetchObject`.
 *
 * @throws what `fetch` throws; while a body is read, SOURCE_FAILED if it cannot continue.
 */
export async function resumingFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const response = await fetch(request.clone());
  if (request.method !== "GET" || !response.headers.has("x-agarose-read")) return response;
  const reopen = (rest: Readonly<Record<string, string>>): Promise<Response> => {
    const headers = new Headers(request.headers);
    for (const [name, value] of Object.entries(rest)) headers.set(name, value);
    return fetch(new Request(request.clone(), { headers }));
  };
  return resumedResponse(response, reopen, request.signal);
}
