/**
 * The service worker seen from the page.
 */
import { register } from "@agarose/sw";

export type WorkerState = "starting" | "active" | "absent";

const CONTROL_WAIT_MS = 4000;

/**
 * Registers the service worker and resolves once it controls the page, or after a few seconds without it, or when it
 * cannot be registered; `problem` says why not.
 */
export async function startServiceWorker(): Promise<{ state: WorkerState; problem?: string }> {
  const registered = register().then(
    () => ({ state: "active" as const }),
    (error: unknown) => ({ state: "absent" as const, problem: (error as Error).message }),
  );
  const late = new Promise<{ state: "starting" }>((resolve) => {
    setTimeout(() => resolve({ state: "starting" }), CONTROL_WAIT_MS);
  });
  return await Promise.race([registered, late]);
}

/** Whether a service worker answers this page's requests now. */
export function isControlled(): boolean {
  return "serviceWorker" in navigator && navigator.serviceWorker.controller !== null;
}
