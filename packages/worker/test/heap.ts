/** The JavaScript heap of one isolate of workerd, over the DevTools protocol. */
import { setTimeout as sleep } from "node:timers/promises";

/** Samples of a heap. */
export interface HeapWatch {
  /** Used heap and array buffers at first, in bytes. */
  readonly before: number;
  /** The largest sample above `before`. */
  stop(): number;
  /** All samples so far. */
  readonly samples: readonly number[];
}

const SAMPLE_MS = 50;
/** Array buffers that the first collection finds are freed in parallel, which is over when the second one ends. */
const COLLECT = "gc(); gc()";
const LOOKS = 3;

/**
 * Starts to sample the isolate `id` of the workerd whose inspector listens on `port`. All garbage is collected before
 * each sample, so that only what is in use counts, for which V8 needs `--expose-gc`. Throws when there is no such
 * isolate.
 */
export async function watchHeap(port: number, id: string, sampleMs = SAMPLE_MS): Promise<HeapWatch> {
  const response = await fetch(`http://127.0.0.1:${port}/json/list`);
  const targets = (await response.json()) as { readonly id: string; readonly webSocketDebuggerUrl: string }[];
  const target = targets.find((one) => one.id === id);
  if (!target) throw new Error(`the inspector on port ${port} has no isolate ${id}`);
  const session = await HeapSession.open(target.webSocketDebuggerUrl);
  await session.sample();
  const before = session.bytes;
  const samples = [before];
  const over = new AbortController();
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await session.sample();
      samples.push(session.bytes);
      await sleep(sampleMs);
    }
  };
  void watch();
  return {
    before,
    samples,
    stop() {
      over.abort();
      session.close();
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
  /** Where the Worker's own code runs. */
  readonly #context = Promise.withResolvers<number>();
  readonly #answers = new Map<number, (result: unknown) => void>();
  #nextId = 1;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const { id, result, method, params } = JSON.parse(String(data)) as Message;
      if (method === "Runtime.executionContextCreated") this.#context.resolve(params.context.id);
      if (id === undefined) return;
      this.#answers.get(id)?.(result);
      this.#answers.delete(id);
    });
  }

  static async open(url: string): Promise<HeapSession> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", () => reject(new Error(`${url} cannot be opened`)), { once: true });
    });
    const session = new HeapSession(socket);
    await session.#ask("Runtime.enable");
    return session;
  }

  /** Resolves when the answer is in `bytes`; never, once closed. */
  async sample(): Promise<void> {
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
