/**
 * Registers the service worker from a page and waits until it is in charge there.
 */
import { AgaroseError } from "@agarose/core";
import { configFromUrl, type ClientConfig, type ConfigFile } from "./config.ts";
import { fetchConfig } from "./config-store.ts";
import { logReads } from "./log-reads.ts";
import { openConnections } from "./open-connections.ts";
import { stayAwake } from "./stay-awake.ts";
import { checkWorkerFile } from "./worker-file.ts";

export interface RegisterOptions {
  /** `module` for a worker of one's own that is one. Default `classic`, which the drop-in files are. */
  readonly type?: WorkerType;
  /** Paths that the worker controls. The browser's default is the folder of its file. */
  readonly scope?: string;
  /** Fail when the worker has not taken control after so long. Default 20,000 ms. */
  readonly timeoutMs?: number;
  /** Told when a newer worker has been installed and waits; call `activate` to let it take over at once. */
  readonly onUpdate?: (activate: () => void) => void;
  /**
   * Told when the drop-in file that the server sends is not the one that belongs to this page: of another version, or
   * altered. The worker goes on all the same. Writes a warning to the console by default.
   */
  readonly onStale?: (problem: AgaroseError) => void;
  /** Write a line to the console for every read. Default: whether `localStorage` has an item `agarose-debug`. */
  readonly debug?: boolean;
}

/** The files that take their configuration from their own URL. A worker that imports them has one in its source. */
const DROP_IN = /\/agarose-sw(\.offline)?\.js$/;

export const WORKER_URL_DEFAULT = "/agarose-sw.js?config=/agarose.json";

/**
 * Registers the worker at `url` and resolves when it controls this page, also on the first load.
 *
 * @throws CONFIG_INVALID when service workers are missing (an insecure origin, private browsing), when the worker's
 *   configuration is unsound, or when its file cannot be registered; READ_TIMEOUT when it does not take control in time.
 */
export async function register(
  url: string = WORKER_URL_DEFAULT,
  options: RegisterOptions = {},
): Promise<ServiceWorkerRegistration> {
  const container = serviceWorkers();
  const { href, pathname } = new URL(url, document.baseURI);
  const source = configFromUrl(href);
  if (!source && DROP_IN.test(pathname)) throw unconfigured(url);
  if (source) openConnections(await checkedConfig(source, pathname));
  const { type = "classic", scope, onUpdate, onStale = warn, timeoutMs = 20_000, debug = isDebugging() } = options;
  if (debug) logReads();
  const registration = await container
    .register(url, { type, updateViaCache: "none", ...(scope === undefined ? {} : { scope }) })
    .catch(async (error: unknown) => {
      throw (DROP_IN.test(pathname) && (await problemOf(href))) || notRegistered(url, error);
    });
  if (onUpdate) watchUpdates(registration, onUpdate);
  await controlled(container, registration, timeoutMs).catch(async (error: unknown) => {
    throw (DROP_IN.test(pathname) && (await problemOf(href))) || error;
  });
  if (!keptAwake.has(container)) stayAwake(container);
  keptAwake.add(container);
  // Nobody waits for this: the worker works, and the file matters for the next visit.
  if (DROP_IN.test(pathname)) void problemOf(href).then((problem) => problem && onStale(problem));
  return registration;
}

/** That of the page, however often it registers. */
const keptAwake = new WeakSet<ServiceWorkerContainer>();

/** What is wrong with the worker's files, or undefined when nothing is or they cannot be looked at. */
async function problemOf(href: string): Promise<AgaroseError | undefined> {
  const files = compiles() ? [href] : [href, new URL("agarose-decoder.js", href).href];
  try {
    for (const file of files) await checkWorkerFile(file, globalThis.fetch.bind(globalThis));
  } catch (error) {
    return error instanceof AgaroseError ? error : undefined;
  }
  return undefined;
}

/** Whether there is WebAssembly in this page, and so most likely in its worker, which is served by the same host. */
function compiles(): boolean {
  try {
    // The smallest module there is.
    return Boolean(new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)));
  } catch {
    return false;
  }
}

/** Storage may be forbidden. */
function isDebugging(): boolean {
  try {
    return globalThis.localStorage?.getItem("agarose-debug") != null;
  } catch {
    return false;
  }
}

function warn({ message }: AgaroseError): void {
  console.warn(`agarose: ${message}`);
}

function notRegistered(url: string, error: unknown): AgaroseError {
  return new AgaroseError(
    "CONFIG_INVALID",
    `service worker ${url} was not registered: check that the file is there and is served as JavaScript (${String(error)})`,
    { url },
    error,
  );
}

function serviceWorkers(): ServiceWorkerContainer {
  if ("serviceWorker" in navigator) return navigator.serviceWorker;
  throw new AgaroseError(
    "CONFIG_INVALID",
    isSecureContext
      ? "this browser offers no service workers here (private browsing?): read with fetchObject instead"
      : `service workers need https or localhost, this page is on ${location.origin}: serve it over https`,
    { secure: isSecureContext },
  );
}

function unconfigured(url: string): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", `${url} names no configuration: add \`?config=/agarose.json\``, { url });
}

/** Browsers say no more than "failed to install" of a worker with a wrong configuration; this says what is wrong. */
async function checkedConfig(source: ConfigFile, pathname: string): Promise<ClientConfig> {
  const config = await fetchConfig(source, { fetch: globalThis.fetch.bind(globalThis), caches: undefined });
  if (config.offline === undefined || !DROP_IN.test(pathname) || pathname.includes(".offline.")) return config;
  throw new AgaroseError(
    "CONFIG_INVALID",
    `${source.url} asks for "offline", which ${pathname} has not: register agarose-sw.offline.js`,
    { url: source.url, field: "offline" },
  );
}

function watchUpdates(registration: ServiceWorkerRegistration, onUpdate: (activate: () => void) => void): void {
  const tell = (worker: ServiceWorker): void => onUpdate(() => worker.postMessage({ agarose: "skip-waiting" }));
  const watch = (worker: ServiceWorker): void => {
    worker.addEventListener("statechange", () => {
      if (worker.state === "installed" && registration.active) tell(worker);
    });
  };
  if (registration.waiting && registration.active) tell(registration.waiting);
  if (registration.installing) watch(registration.installing);
  registration.addEventListener("updatefound", () => {
    if (registration.installing) watch(registration.installing);
  });
}

async function controlled(
  container: ServiceWorkerContainer,
  registration: ServiceWorkerRegistration,
  timeoutMs: number,
): Promise<void> {
  if (container.controller) return;
  const result = Promise.withResolvers<void>();
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  const onState = (): void => {
    if (worker?.state === "redundant") result.reject(notControlled("failed to install", registration));
  };
  // A page that was loaded past its worker (hard reload) stays uncontrolled until the worker claims it.
  const timer = setTimeout(
    () => result.reject(notControlled(`took no control in ${timeoutMs} ms`, registration)),
    timeoutMs,
  );
  container.addEventListener("controllerchange", () => result.resolve(), { once: true });
  worker?.addEventListener("statechange", onState);
  onState();
  if (registration.active) registration.active.postMessage({ agarose: "claim" });
  try {
    await result.promise;
  } finally {
    clearTimeout(timer);
    worker?.removeEventListener("statechange", onState);
  }
}

function notControlled(problem: string, { scope }: ServiceWorkerRegistration): AgaroseError {
  return new AgaroseError(
    problem.startsWith("failed") ? "CONFIG_INVALID" : "READ_TIMEOUT",
    `the service worker of ${scope} ${problem}: is this page (${location.pathname}) below its scope?`,
    { scope, page: location.pathname },
  );
}
