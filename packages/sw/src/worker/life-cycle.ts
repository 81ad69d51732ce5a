/**
 * Life cycle of the worker. The first install takes control of open pages at once. An update waits until they close,
 * unless a page asks for it.
 */
import { toAgaroseError } from "@agarose/core";
import type { ObjectClient } from "../client/object-client.ts";
import type { WorkerMessage } from "../common/messages.ts";
import type { InstallEvent, WorkerScope } from "./worker-scope.ts";

/** Dependencies of a life cycle. */
export interface LifeCycleOptions {
  /** Rejects when the worker cannot work, so that the browser does not install it. */
  readonly ready: () => Promise<unknown>;
  /** Whether the first install takes control of open pages. */
  readonly claim: boolean;
  /** Set when the worker responds to these paths only: the browser may then bypass it for all others. */
  readonly onlyPrefix: string | false;
}

/** Listens to `install` and `activate`. */
export function installLifeCycle(scope: WorkerScope, { ready, claim, onlyPrefix }: LifeCycleOptions): void {
  let isFirst = false;
  scope.addEventListener("install", (event) => {
    isFirst = !scope.registration.active;
    event.waitUntil(ready());
    if (onlyPrefix) event.waitUntil(spareOthers(event, onlyPrefix));
  });
  scope.addEventListener("activate", (event) => {
    if (isFirst && claim) event.waitUntil(scope.clients.claim());
  });
}

/** Every field that a message may have. */
interface AnyMessage {
  readonly type?: string;
  readonly agarose?: string;
  readonly keys?: readonly string[];
  readonly prefix?: string;
}

/** Handles the messages of pages: they concern the worker itself, or the reads of one client. */
export function handleMessages(
  scope: WorkerScope,
  client: () => Promise<ObjectClient>,
  configure: () => Promise<void>,
): void {
  scope.addEventListener("message", (event) => {
    const message = event.data as WorkerMessage | null | undefined;
    if (!message) return;
    const [port] = event.ports;
    const answer = (error?: unknown): void => port?.postMessage(error && toAgaroseError(error).toJSON());
    event.waitUntil(handle(message).then(() => answer(), answer));
  });

  async function handle(message: WorkerMessage): Promise<void> {
    const { type, agarose: what, keys = [], prefix } = message as AnyMessage;
    if (type === "SKIP_WAITING") return scope.skipWaiting();
    if (!what) return;
    if (what === "claim") return scope.clients.claim();
    if (what === "configure") return configure();
    const reads = await client();
    if (what === "probe") await reads.probe(true);
    if (what === "purge")
      await reads.purge((key) => keys.includes(key) || (prefix !== undefined && key.startsWith(prefix)));
    if (what === "update") await reads.update(keys);
    if (what === "preload") await reads.preload(keys);
  }
}

/** Asks the browser to send requests outside the prefix to the network without starting the worker. */
async function spareOthers(event: InstallEvent, prefix: string): Promise<void> {
  // A backslash escapes characters with a meaning in a URL pattern.
  const pathname = `${prefix.replace(/[^\w/-]/g, "\\$&")}*`;
  const route = { condition: { not: { urlPattern: { pathname } } }, source: "network" };
  // A browser without `not` rejects this and keeps starting the worker, which lets these requests pass.
  await event.addRoutes?.(route).catch(() => {});
}
