/** Reads through the service worker that controls the page. */
import { AgaroseError } from "@agarose/core";
import { errorResponse } from "../common/http-response.ts";
import type { WorkerMessage } from "../common/messages.ts";
import { resumedResponse } from "../common/resumed-response.ts";
import { receivedError, type Reading, type SentError } from "./agarose.ts";

/** No browser lets a worker work on one message for longer. */
const ANSWER_MS_MAX = 300_000;

/** `Reading` by the worker in control, which answers below `prefix`. */
export function workerReading(prefix: string): Reading {
  return {
    prefix,
    async read(request) {
      const response = await answered(request);
      if (request.method !== "GET" || !response.headers.has("x-agarose-read")) return response;
      const reopen = (rest: Readonly<Record<string, string>>): Promise<Response> => {
        const headers = new Headers(request.headers);
        for (const [name, value] of Object.entries(rest)) headers.set(name, value);
        return answered(new Request(request.clone(), { headers }));
      };
      return resumedResponse(response, reopen, request.signal);
    },
    preload: (keys) => send({ agarose: "preload", keys }),
    update: (keys) => send({ agarose: "update", keys }),
    purge: (which) => send({ agarose: "purge", ...which }),
  };
}

/** The response of a worker of Agarose, or one that says that there is none: not every 200 is an object. */
async function answered(request: Request): Promise<Response> {
  const response = await fetch(request.clone());
  const isOurs = ["x-agarose-read", "x-agarose-error"].some((name) => response.headers.has(name));
  if (isOurs || request.method !== "GET" || response.status === 304 || response.status === 412) return response;
  await response.body?.cancel();
  const { pathname } = new URL(request.url);
  return errorResponse(
    new AgaroseError(
      "CONFIG_INVALID",
      `no service worker of Agarose answers for ${pathname}: await register(), and pass it the prefix of its worker`,
      { path: pathname, status: response.status },
    ),
  );
}

/** Resolves when the worker has done what `message` asks for, and rejects with its error. */
async function send(message: WorkerMessage): Promise<void> {
  const { controller } = globalThis.navigator?.serviceWorker ?? {};
  if (!controller) {
    throw new AgaroseError("CONFIG_INVALID", "no service worker controls this page: await register() before");
  }
  const { port1: own, port2: port } = new MessageChannel();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const answer = new Promise<SentError | undefined>((resolve, reject) => {
    own.addEventListener("message", ({ data }) => resolve(data));
    own.start();
    const details = { controller: controller.scriptURL, timeoutMs: ANSWER_MS_MAX };
    const problem = `${controller.scriptURL} has not answered in ${ANSWER_MS_MAX} ms: is it a worker of Agarose?`;
    timer = setTimeout(() => reject(new AgaroseError("READ_TIMEOUT", problem, details)), ANSWER_MS_MAX);
  });
  try {
    controller.postMessage(message, [port]);
    const error = await answer;
    if (error) throw receivedError(error, {});
  } finally {
    clearTimeout(timer);
    own.close();
  }
}
