/**
 * Life cycle of the worker: the first install takes control of open pages at once, an update waits for them to close,
 * unless a page asks for it.
 */
import type { ObjectClient } from "../client/object-client.ts";
import type { InstallEvent, WorkerScope } from "./worker-scope.ts";

/** What a page may tell its worker: `registration.waiting.postMessage({ agarose: "skip-waiting" })`. */
export type WorkerMessage =
  /** Take over from the older worker now. */
  | { readonly agarose: "skip-waiting" }
  /** Take control of the page that asks, and all others in scope: after a hard reload a page is without its worker. */
  | { readonly agarose: "claim" }
  /** Nothing: an event keeps some browsers from ending the worker. */
  | { readonly agarose: "stay-awake" }
  /** The network has changed: measure the PoPs' round trips now. */
  | { readonly agarose: "probe" }
  /** Forget the plans of these keys, or of all that begin with `prefix` (all there are by ""), and drop what is kept of them. */
  | { readonly agarose: "purge"; readonly keys?: readonly string[]; readonly prefix?: string }
  /** Fetch the plans of these keys, so that reads of them need not wait for that. */
  | { readonly agarose: "preload"; readonly keys: readonly string[] }
  /** `preload`, also where a plan is known: these objects have changed. */
  | { readonly agarose: "update"; readonly keys: readonly string[] };

export interface LifeCycleOptions {
  /** Rejects when the worker cannot work; it is then not installed. */
  readonly ready: () => Promise<unknown>;
  /** Whether the first install takes control of pages that are open already. */
  readonly claim: boolean;
  /** The only paths that this worker answers, where no other code in it listens: the browser may then spare it the rest. */
  readonly onlyPrefix: string | false;
}

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

/** Does what pages tell the worker of `scope`, as far as that concerns the worker itself and the reads of one client. */
export function obeyMessages(scope: WorkerScope, client: () => Promise<ObjectClient>): void {
  scope.addEventListener("message", (event) => {
    const message = event.data as WorkerMessage | null | undefined;
    if (message?.agarose) event.waitUntil(obey(message));
  });

  async function obey(message: WorkerMessage): Promise<void> {
    const { agarose: what, keys = [], prefix } = message as WorkerMessage & { keys?: string[]; prefix?: string };
    if (what === "skip-waiting") return scope.skipWaiting();
    if (what === "claim") return scope.clients.claim();
    const reads = await client();
    if (what === "probe") await reads.probe(true);
    if (what === "purge")
      await reads.purge((key) => keys.includes(key) || (prefix !== undefined && key.startsWith(prefix)));
    if (what === "update") reads.plans.purge((key) => keys.includes(key));
    if (what === "update" || what === "preload") await reads.preload(keys);
  }
}

/** Lets the browser send requests outside the prefix to the network without starting the worker. */
async function spareOthers(event: InstallEvent, prefix: string): Promise<void> {
  // What has a meaning in a pattern is escaped by a backslash.
  const pathname = `${prefix.replace(/[^\w/-]/g, "\\$&")}*`;
  const route = { condition: { not: { urlPattern: { pathname } } }, source: "network" };
  // A browser that knows no `not` refuses, and goes on asking the worker, which lets these requests pass.
  await event.addRoutes?.(route).catch(() => {});
}
