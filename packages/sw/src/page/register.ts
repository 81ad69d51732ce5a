/** Registers the service worker from a page and waits until it is in charge there. */
import { AgaroseError } from "@agarose/core";
import { configFromUrl, PREFIX_DEFAULT, type ClientConfig, type ConfigFile } from "../common/config.ts";
import { fetchConfig } from "../common/config-file.ts";
import { Agarose } from "./agarose.ts";
import { workerReading } from "./worker-reading.ts";
import { keepAwake } from "./keep-awake.ts";
import { CODEC_FILE, isWorkerFile, workerFileOf } from "../common/worker-files.ts";
import { checkWorkerFile } from "./worker-file.ts";
import { savesData } from "../ports/saves-data.ts";

/** Options of `register`. Without any, it registers `/agarose-sw.js` with `/agarose.json`. */
export interface RegisterOptions {
  /**
   * Address of the worker's file: one of the drop-in files, or your own worker.
   *
   * @defaultValue `/agarose-sw.js`
   */
  readonly worker?: string;
  /**
   * Address of the client configuration, for a worker that reads it from its URL, as the drop-in files do.
   *
   * @defaultValue `/agarose.json`; none for your own worker
   */
  readonly config?: string;
  /**
   * The path below which requests are for objects. Your own worker must have the same one.
   *
   * @defaultValue `/ec/`
   */
  readonly prefix?: string;
  /**
   * Whether the worker responds when an object is opened as a page, in a frame, or by a link that saves it.
   *
   * @defaultValue `false`
   */
  readonly navigations?: boolean;
  /**
   * `module` if your own worker is a module. The drop-in files are classic workers.
   *
   * @defaultValue `classic`
   */
  readonly type?: WorkerType;
  /**
   * Paths that the worker controls.
   *
   * @defaultValue the folder of the file
   */
  readonly scope?: string;
  /**
   * `register` rejects with READ_TIMEOUT when the worker has no control by then. The error names a different worker
   * that has it.
   *
   * @defaultValue 20,000
   */
  readonly timeoutMs?: number;
  /**
   * Whether the worker controls this page at once. With `false`, `register` resolves when the worker is active. It
   * controls the page from the next load.
   *
   * @defaultValue `true`
   */
  readonly claim?: boolean;
  /** Called when a newer worker waits. Ask the user, call `activate()`, then reload. */
  readonly onUpdate?: (activate: () => void) => void;
  /**
   * Called when the worker keeps running but the server's files or configuration do not match.
   *
   * @defaultValue a warning on the console
   */
  readonly onStale?: (problem: AgaroseError) => void;
}

const WORKER_DEFAULT = "/agarose-sw.js";
const CONFIG_DEFAULT = "/agarose.json";

/**
 * Registers a worker, resolves when it controls this page, and returns an object that reads through it. Works on the
 * first load, after a hard reload, and without a network where the worker was registered before.
 *
 * @throws CONFIG_INVALID when service workers are missing (an insecure origin, private browsing), when the worker's
 *   configuration is unsound, or when its file cannot be registered; READ_TIMEOUT when it does not take control in
 *   time.
 */
export async function register(options: RegisterOptions = {}): Promise<Agarose> {
  const container = serviceWorkers();
  const { type = "classic", scope, onUpdate, onStale = warn, claim = true, timeoutMs = 20_000 } = options;
  const { worker = WORKER_DEFAULT, prefix = PREFIX_DEFAULT } = options;
  const { pathname } = new URL(worker, document.baseURI);
  // These take their configuration from their own URL. A worker that imports them has one in its source.
  const isDropIn = isWorkerFile(pathname);
  if (isDropIn && type === "module") throw noModule(worker);
  const url = workerUrl(worker, { ...(isDropIn && { config: CONFIG_DEFAULT }), ...options });
  const { href } = new URL(url, document.baseURI);
  const source = configFromUrl(href);
  if (source) {
    await checkedConfig(source, pathname).then(openConnections, async (error: AgaroseError) => {
      // A worker that was installed before reads by the copy it has.
      if ((await container.getRegistration())?.active?.scriptURL !== href) throw error;
      if (!isUnreachable(error)) onStale(error);
    });
  }
  const registration = await container
    .register(url, { type, updateViaCache: "none", ...(scope === undefined ? {} : { scope }) })
    .catch(async (error: unknown) => {
      throw (isDropIn && (await problemOf(href))) || notRegistered(url, error);
    });
  if (onUpdate) watchUpdates(registration, onUpdate);
  const isOurs = ({ scriptURL }: ServiceWorker): boolean => !isDropIn || isWorkerFile(new URL(scriptURL).pathname);
  await ready(container, registration, { isOurs, claim, timeoutMs }).catch(async (error: AgaroseError) => {
    throw (isDropIn && error.code === "CONFIG_INVALID" && (await problemOf(href))) || error;
  });
  // A worker that has run for long may have an older configuration than this page has just seen.
  const { active } = registration;
  if (source && active && isOurs(active)) active.postMessage({ agarose: "configure" });
  if (!keptAwake.has(container)) keepAwake(container);
  keptAwake.add(container);
  // In the background: the worker works, and the files matter for the next visit.
  if (isDropIn) void problemOf(href).then((problem) => problem && onStale(problem));
  return new Agarose(workerReading(source?.prefix ?? prefix));
}

/** A worker routes before it can load a file, so its own URL says what it has to know at once. */
function workerUrl(worker: string, { config, prefix, claim, navigations }: RegisterOptions): string {
  if (config === undefined) return worker;
  const query = {
    config,
    ...(prefix !== undefined && prefix !== PREFIX_DEFAULT && { prefix }),
    ...(claim === false && { claim: "no" }),
    ...(navigations && { navigations: "yes" }),
  };
  const text = new URLSearchParams(query).toString().replaceAll("%2F", "/");
  return `${worker}${worker.includes("?") ? "&" : "?"}${text}`;
}

/** That of the page, however often it registers. */
const keptAwake = new WeakSet<ServiceWorkerContainer>();

/** The problem of the worker's files; undefined if there is none or they cannot be fetched. */
async function problemOf(href: string): Promise<AgaroseError | undefined> {
  const fetch = globalThis.fetch.bind(globalThis);
  try {
    for (const file of [href, CODEC_FILE]) await checkWorkerFile(new URL(file, href).href, fetch);
  } catch (error) {
    return error instanceof AgaroseError ? error : undefined;
  }
  return undefined;
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

function noModule(worker: string): AgaroseError {
  return new AgaroseError(
    "CONFIG_INVALID",
    `${worker} is a classic worker: leave out \`type\`, or register a module of your own that imports ` +
      `/${CODEC_FILE} and then /agarose-sw.js`,
    { worker, type: "module" },
  );
}

function serviceWorkers(): ServiceWorkerContainer {
  if ("serviceWorker" in navigator) return navigator.serviceWorker;
  throw new AgaroseError(
    "CONFIG_INVALID",
    isSecureContext
      ? "this browser offers no service workers here (private browsing?): read by createClient instead"
      : `service workers need https or localhost, this page is on ${location.origin}: serve it over https`,
    { secure: isSecureContext },
  );
}

/** Browsers say no more than "failed to install" of a worker with a wrong configuration; this says what is wrong. */
async function checkedConfig(source: ConfigFile, pathname: string): Promise<ClientConfig> {
  const ports = { fetch: globalThis.fetch.bind(globalThis), caches: undefined };
  const config = await fetchConfig(source, ports).catch(({ message, details, cause }: AgaroseError) => {
    const what = `configuration ${source.url} cannot be used: ${message}. It must be JSON with "pops" and "regions"`;
    throw new AgaroseError("CONFIG_INVALID", what, { url: source.url, ...details }, cause);
  });
  const file = workerFileOf(pathname);
  if (config.offline === undefined || !file || file.store) return config;
  throw new AgaroseError(
    "CONFIG_INVALID",
    `${source.url} sets "offline", which ${pathname} lacks: register agarose-sw.offline.js`,
    { url: source.url, field: "offline" },
  );
}

/** Whether nothing was answered at all, as without a network. */
function isUnreachable({ cause }: AgaroseError): boolean {
  return cause instanceof TypeError;
}

function watchUpdates(registration: ServiceWorkerRegistration, onUpdate: (activate: () => void) => void): void {
  const report = (worker: ServiceWorker): void => onUpdate(() => worker.postMessage({ type: "SKIP_WAITING" }));
  const watch = (worker: ServiceWorker): void => {
    worker.addEventListener("statechange", () => {
      if (worker.state === "installed" && registration.active) report(worker);
    });
  };
  if (registration.waiting && registration.active) report(registration.waiting);
  if (registration.installing) watch(registration.installing);
  registration.addEventListener("updatefound", () => {
    if (registration.installing) watch(registration.installing);
  });
}

interface Readiness {
  /** Whether a worker in charge is the one that was registered, or an older one of its kind. */
  readonly isOurs: (worker: ServiceWorker) => boolean;
  readonly claim: boolean;
  readonly timeoutMs: number;
}

/** Resolves when the worker is in charge of this page, or active where that is enough. */
async function ready(
  container: ServiceWorkerContainer,
  registration: ServiceWorkerRegistration,
  { isOurs, claim, timeoutMs }: Readiness,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  const look = (): void => {
    const { controller } = container;
    if (controller && isOurs(controller)) return resolve();
    // An update that fails leaves the older worker, which works.
    if (worker?.state === "redundant" && !registration.active)
      reject(notReady("failed to install", registration, controller));
    // A page that was loaded past its worker (hard reload) stays uncontrolled until the worker claims it. A worker of
    // others knows no message of ours, and a browser replaces a worker when it has no work.
    else if (claim) {
      if (registration.active && isOurs(registration.active)) registration.active.postMessage({ agarose: "claim" });
    } else if (registration.active) resolve();
  };
  const onTimeout = (): void =>
    reject(notReady(`took no control in ${timeoutMs} ms`, registration, container.controller));
  const timer = setTimeout(onTimeout, timeoutMs);
  container.addEventListener("controllerchange", look);
  worker?.addEventListener("statechange", look);
  look();
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    container.removeEventListener("controllerchange", look);
    worker?.removeEventListener("statechange", look);
  }
}

function notReady(
  problem: string,
  { scope }: ServiceWorkerRegistration,
  controller: ServiceWorker | null,
): AgaroseError {
  const other = controller?.scriptURL;
  return new AgaroseError(
    problem.startsWith("failed") ? "CONFIG_INVALID" : "READ_TIMEOUT",
    `the service worker of ${scope} ${problem}: ` +
      (other === undefined
        ? `is this page (${location.pathname}) below its scope?`
        : `${other} is in charge until its pages are closed; \`onUpdate\` can let the new one take over`),
    { scope, page: location.pathname, ...(other === undefined ? {} : { controller: other }) },
  );
}

/**
 * Asks for a connection to every PoP and region, unless the user asks for little data. The worker's fetches use them
 * too. A read that opens its own waits two round trips more.
 */
function openConnections({ pops, regions }: ClientConfig): void {
  if (savesData()) return;
  for (const origin of new Set([...pops, ...regions].map(({ url }) => new URL(url).origin))) {
    const link = document.createElement("link");
    link.rel = "preconnect";
    // Connections with and without credentials are not the same ones; reads have none.
    link.crossOrigin = "anonymous";
    link.href = origin;
    document.head.append(link);
  }
}
