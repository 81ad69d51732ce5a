/** JavaScript heaps of a page and its service worker, or of one isolate of workerd, over the DevTools protocol. */
import { setTimeout as sleep } from "node:timers/promises";

/** Samples of a heap. */
export interface HeapWatch {
  /** The sum over all targets of used heap and array buffers at first, in bytes. */
  readonly before: number;
  /** The largest such sum above `before`. */
  stop(): number;
  /** All sums so far. */
  readonly samples: readonly number[];
}

/** What to sample, and how. */
export interface HeapWatchOptions {
  /** Which targets count. Default: pages and service workers. */
  readonly isTarget?: (target: HeapTarget) => boolean;
  /**
   * Collect all garbage before each sample, so that only what is in use counts: needs V8's `--expose-gc`. Default:
   * false.
   */
  readonly live?: boolean;
  /** Time between two samples. Default: 50. */
  readonly sampleMs?: number;
}

/** A page, a service worker or an isolate, as the inspector lists it. */
export interface HeapTarget {
  readonly id: string;
  readonly type: string;
  readonly webSocketDebuggerUrl: string;
}

const SAMPLE_MS = 50;
/** What the first collection finds of array buffers is freed beside it, and has been when the second one ends. */
const COLLECT = "gc(); gc()";
const LOOKS = 3;

/** Starts to sample targets of the browser or workerd whose inspector listens on `port`. Throws when there is none. */
export async function watchHeap(port: number, options: HeapWatchOptions = {}): Promise<HeapWatch> {
  const {
    isTarget = ({ type }) => type === "page" || type === "service_worker",
    live = false,
    sampleMs = SAMPLE_MS,
  } = options;
  const response = await fetch(`http://127.0.0.1:${port}/json/list`);
  const targets = ((await response.json()) as HeapTarget[]).filter(isTarget);
  if (targets.length === 0) throw new Error(`the inspector on port ${port} has none of the targets wanted`);
  const sessions = await Promise.all(
    targets.map(({ webSocketDebuggerUrl }) => HeapSession.open(webSocketDebuggerUrl, live)),
  );
  for (const session of sessions) await session.sample();
  const sum = (): number => sessions.reduce((total, { bytes }) => total + bytes, 0);
  const before = sum();
  const samples = [before];
  const over = new AbortController();
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await Promise.all(sessions.map((session) => session.sample()));
      samples.push(sum());
      await sleep(sampleMs);
    }
  };
  void watch();
  return {
    before,
    samples,
    stop() {
      over.abort();
      for (const session of sessions) session.close();
      return Math.max(...samples) - before;
    },
  };
}

interface HeapUsage {
  readonly usedSize: number;
  /** Array buffers and external strings. */
  readonly backingStorageSize?: number;
}

interface Message {
  readonly id?: number;
  readonly result?: unknown;
  readonly method?: string;
  readonly params: { readonly context: { readonly id: number } };
}

class HeapSession {
  bytes = 0;
  readonly #socket: WebSocket;
  readonly #live: boolean;
  /** Where the Worker's own code runs. */
  readonly #context = Promise.withResolvers<number>();
  readonly #answers = new Map<number, (result: unknown) => void>();
  #nextId = 1;

  private constructor(socket: WebSocket, live: boolean) {
    this.#socket = socket;
    this.#live = live;
    socket.addEventListener("message", ({ data }) => {
      const { id, result, method, params } = JSON.parse(String(data)) as Message;
      if (method === "Runtime.executionContextCreated") this.#context.resolve(params.context.id);
      if (id === undefined) return;
      this.#answers.get(id)?.(result);
      this.#answers.delete(id);
    });
  }

  static async open(url: string, live: boolean): Promise<HeapSession> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", () => reject(new Error(`${url} cannot be opened`)), { once: true });
    });
    const session = new HeapSession(socket, live);
    if (live) await session.#ask("Runtime.enable");
    return session;
  }

  /** Resolves when the answer is in `bytes`; never, once closed. */
  async sample(): Promise<void> {
    if (!this.#live) return void (this.bytes = await this.#usage());
    const context = await this.#context.promise;
    // All at once, so that the isolate has no turn between a collection and the look after it, which would leave new
    // garbage. Where the messages come apart all the same, another look shows what is in use.
    const looks = Array.from({ length: LOOKS }, async () => {
      const [, bytes] = await Promise.all([this.#collect(context), this.#usage()]);
      return bytes;
    });
    this.bytes = Math.min(...(await Promise.all(looks)));
  }

  async #usage(): Promise<number> {
    const { usedSize, backingStorageSize = 0 } = (await this.#ask("Runtime.getHeapUsage")) as HeapUsage;
    return usedSize + backingStorageSize;
  }

  /**
   * Collects in the isolate itself, between two of its turns. `HeapProfiler.collectGarbage` will not do: workerd does
   * it at a moment of its own choice, or never while the isolate is idle.
   */
  async #collect(contextId: number): Promise<void> {
    const { exceptionDetails } = (await this.#ask("Runtime.evaluate", { expression: COLLECT, contextId })) as {
      exceptionDetails?: { exception?: { description?: string } };
    };
    if (exceptionDetails) throw new Error(`no collection: ${exceptionDetails.exception?.description}`);
  }

  close(): void {
    this.#socket.close();
  }

  #ask(method: string, params = {}): Promise<unknown> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#answers.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }
}
