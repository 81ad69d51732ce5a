/** The service worker as the page sees it. */
import { register } from "@agarose/sw";

export type WorkerState = "starting" | "active" | "absent";

const CONTROL_WAIT_MS = 4000;

/**
 * Registers the service worker. Resolves when it controls the page, after a few seconds without it, or when the
 * registration fails. `problem` says why.
 */
export async function startServiceWorker(): Promise<{ state: WorkerState; problem?: string }> {
  const outcome = register().then(
    () => ({ state: "active" as const }),
    (error: unknown) => ({ state: "absent" as const, problem: (error as Error).message }),
  );
  const late = new Promise<{ state: "starting" }>((resolve) => {
    setTimeout(() => resolve({ state: "starting" }), CONTROL_WAIT_MS);
  });
  return await Promise.race([outcome, late]);
}

/** Returns whether a service worker answers the requests of this page. */
export function isControlled(): boolean {
  return "serviceWorker" in navigator && navigator.serviceWorker.controller !== null;
}
