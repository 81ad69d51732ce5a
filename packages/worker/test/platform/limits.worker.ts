/**
 * The Worker under the limits of the platform. What an invocation does is found by its asynchronous context, so it
 * counts whatever module does it; `GET /__limits` says what was counted. `POST /__limits` sets what of the platform is
 * in trouble (`PlatformFaults`).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import worker, { PopState as RealPopState, RequestMonitor as RealRequestMonitor, type Env } from "../../src/index.ts";
import { KvHistory, NO_FAULTS, type PlatformFaults } from "./platform-faults.ts";
import { InvocationLimits, KvLimits, SUBREQUESTS_MAX, type InvocationReport } from "./platform-limits.ts";

export { PeerState } from "../../src/index.ts";

/** The real one: its periods are invocations of their own. */
export class PopState extends RealPopState {
  readonly #limitedEnv: Env;

  constructor(state: DurableObjectState, env: Env) {
    countRows(state);
    super(state, wrap(env));
    this.#limitedEnv = env;
  }

  override runPeriod(): Promise<void> {
    return limited("period", this.#limitedEnv, () => super.runPeriod());
  }
}

/**
 * The real one, and a way to have workerd end it: what it holds in memory is lost, and the next call makes a new
 * object.
 */
export class RequestMonitor extends RealRequestMonitor {
  constructor(state: DurableObjectState, env: object) {
    countRows(state);
    super(state, env);
  }

  crash(): void {
    this.ctx.abort("crashed for a test");
  }
}

/** Rows that Durable Objects have written since the last report. Cloudflare bills them. */
let rowsWritten = 0;
let countsRows = false;

/** Counts what objects write, from the first one on. */
function countRows({ storage }: DurableObjectState): void {
  if (countsRows) return;
  countsRows = true;
  const prototype = Object.getPrototypeOf(storage.sql) as { exec: (...args: unknown[]) => { rowsWritten: number } };
  const { exec } = prototype;
  prototype.exec = function (...args) {
    const cursor = exec.apply(this, args);
    rowsWritten += cursor.rowsWritten;
    return cursor;
  };
}

/** Calls of Durable Objects since the last report, by class and method, whatever invocation made them. */
let objectCalls: Record<string, number> = {};

const REPORT_PATH = "/__limits";

const invocations = new AsyncLocalStorage<InvocationLimits>();
let latest: InvocationLimits | undefined;
const reports: InvocationReport[] = [];
const violations: string[] = [];
let faults = NO_FAULTS;
/** Operations that the present faults have spoiled. */
let fired = 0;
let writes = 0;
const killed = new WeakSet<InvocationLimits>();
const violated = (violation: string): void => void violations.push(violation);

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    if (pathname === REPORT_PATH) {
      const spoiled = fired;
      if (request.method === "POST") {
        faults = { ...NO_FAULTS, ...((await request.json()) as Partial<PlatformFaults>) };
        fired = 0;
        writes = 0;
      }
      const written = rowsWritten;
      rowsWritten = 0;
      const called = objectCalls;
      objectCalls = {};
      return Response.json({
        invocations: reports.splice(0),
        violations: violations.splice(0),
        fired: spoiled,
        rowsWritten: written,
        objectCalls: called,
      });
    }
    return limited(pathname, env, () => worker.fetch(request, wrap(env), context));
  },
  scheduled: (event, env, context) => limited("cron", env, () => worker.scheduled(event, wrap(env), context)),
} satisfies ExportedHandler<Env>;

function limited<T>(what: string, { SUBREQUESTS_MAX: max }: Env, task: () => T): T {
  const limits = new InvocationLimits(what, Number(max ?? SUBREQUESTS_MAX), violated);
  latest = limits;
  reports.push(limits.report);
  return invocations.run(limits, task);
}

/** Never ends for an invocation that was killed. */
async function alive(): Promise<void> {
  if (killed.has(current())) await new Promise(() => {});
}

/** A stream's `pull` has no asynchronous context: what it does counts for the invocation that started last. */
function current(): InvocationLimits {
  return invocations.getStore() ?? latest!;
}

const platformNow = Date.now.bind(Date);
const now = (): number => platformNow() + faults.clockAheadMs;
Date.now = () => {
  if (faults.clockAheadMs !== 0) fired++;
  return now();
};

const platformFetch = globalThis.fetch;
globalThis.fetch = ((...args: Parameters<typeof fetch>) => {
  const limits = current();
  limits.subrequest();
  return limits.connect(() => platformFetch(...args));
}) as typeof fetch;

const platformCaches = caches;
const limitedCache = {
  match: (url: string) => cacheOperation(url, (cache) => cache.match(url)),
  put: (url: string, response: Response) => cacheOperation(url, (cache) => cache.put(url, response)),
  delete: (url: string) => cacheOperation(url, (cache) => cache.delete(url)),
};
Object.defineProperty(globalThis, "caches", { value: { open: async () => limitedCache } });

async function cacheOperation<T>(url: string, operation: (cache: Cache) => Promise<T>): Promise<T> {
  const limits = current();
  limits.cacheOperation(url);
  return limits.connect(async () => operation(await platformCaches.open("agarose")));
}

/** One wrapped environment per isolate: the isolate's memory hangs on its identity. */
let wrapped: Env | undefined;

function wrap(env: Env): Env {
  wrapped ??= {
    ...env,
    CHUNKS: limitedKv(env.CHUNKS),
    REQUEST_MONITOR: limitedObjects(env.REQUEST_MONITOR, "RequestMonitor"),
    POP_STATE: limitedObjects(env.POP_STATE, "PopState"),
  };
  return wrapped;
}

function limitedKv(kv: Env["CHUNKS"]): Env["CHUNKS"] {
  const limits = new KvLimits(platformNow, violated);
  const history = new KvHistory(kv);
  return {
    get: (name: string, type?: "arrayBuffer") =>
      kvOperation(
        () => limits.checkName(name),
        async () => {
          const old = history.before(name, now() - faults.kvBehindMs);
          if (old === undefined)
            return (type ? kv.get(name, type) : kv.get(name)) as Promise<ArrayBuffer | string | null>;
          fired++;
          return old === null || type ? old : new TextDecoder().decode(old);
        },
      ),
    put: (name: string, value: string | ArrayBuffer) =>
      kvOperation(
        () => {
          const bytes = typeof value === "string" ? new TextEncoder().encode(value).length : value.byteLength;
          limits.checkWrite(name, bytes, undefined);
          if (faults.killedAfterWrites === null || ++writes <= faults.killedAfterWrites) return;
          fired++;
          killed.add(current());
        },
        () => history.change(name, now(), () => kv.put(name, value)),
      ),
    delete: (name: string) =>
      kvOperation(
        () => limits.checkRate(name),
        () => history.change(name, now(), () => kv.delete(name)),
      ),
  } as Env["CHUNKS"];
}

async function kvOperation<T>(check: () => void, task: () => Promise<T>): Promise<T> {
  const invocation = current();
  invocation.kvOperation();
  check();
  await alive();
  return invocation.connect(task);
}

/** Calls of Durable Objects are subrequests; they take no connection. */
function limitedObjects<T extends Env["REQUEST_MONITOR"] | Env["POP_STATE"]>(namespace: T, name: string): T {
  return {
    idFromName: (objectName: string) => namespace.idFromName(objectName),
    get: (id: DurableObjectId) => limitedStub((namespace as DurableObjectNamespace).get(id), name),
  } as unknown as T;
}

function limitedStub(stub: object, name: string): object {
  return new Proxy(stub, {
    get(_target, method) {
      return async (...args: unknown[]) => {
        current().objectCall();
        const call = `${name}.${String(method)}`;
        objectCalls[call] = (objectCalls[call] ?? 0) + 1;
        await alive();
        if (faults.objectsOverloaded) {
          fired++;
          throw Object.assign(new Error("Durable Object is overloaded."), { overloaded: true });
        }
        return (stub as Record<string | symbol, (...args: unknown[]) => unknown>)[method]!(...args);
      };
    },
  });
}
