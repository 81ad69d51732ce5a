/** JavaScript heaps of a page and its service worker, or of one isolate of workerd, over the DevTools protocol. */
import { createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface HeapWatch {
  /** The sum over all targets of used heap and array buffers at first, in bytes. */
  readonly before: number;
  /** The largest such sum above `before`. */
  stop(): number;
  /** All sums so far. */
  readonly samples: readonly number[];
}

export interface HeapWatchOptions {
  /** Which targets count. Default: pages and service workers. */
  readonly isTarget?: (target: HeapTarget) => boolean;
  /** Collect garbage before each sample, so that only what is in use counts. Default: false. */
  readonly live?: boolean;
}

export interface HeapTarget {
  readonly id: string;
  readonly type: string;
  readonly webSocketDebuggerUrl: string;
}

const SAMPLE_MS = 50;
/** Looks at what is in use after garbage was asked to be collected. */
const LIVE_LOOKS = 5;

/** A port that is free now, for `--remote-debugging-port`. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts to sample targets of the browser or workerd whose inspector listens on `port`. Throws when there is none. */
export async function watchHeap(port: number, options: HeapWatchOptions = {}): Promise<HeapWatch> {
  const { isTarget = ({ type }) => type === "page" || type === "service_worker", live = false } = options;
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
  const timer = setInterval(() => {
    for (const session of sessions) void session.sample().then(() => samples.push(sum()));
  }, SAMPLE_MS);
  return {
    before,
    samples,
    stop() {
      clearInterval(timer);
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

class HeapSession {
  bytes = 0;
  readonly #socket: WebSocket;
  readonly #live: boolean;
  readonly #answers = new Map<number, (result: unknown) => void>();
  #nextId = 1;
  #sampling = false;

  private constructor(socket: WebSocket, live: boolean) {
    this.#socket = socket;
    this.#live = live;
    socket.addEventListener("message", ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
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
    return new HeapSession(socket, live);
  }

  /** Resolves when the answer is in `bytes`; a sample that is still under way is not doubled. */
  async sample(): Promise<void> {
    if (this.#sampling) return;
    this.#sampling = true;
    // The collection comes at a moment of workerd's choice: of the figures around it the lowest is without garbage.
    if (this.#live) void this.#ask("HeapProfiler.collectGarbage");
    let least = await this.#usage();
    for (let more = this.#live ? LIVE_LOOKS : 0; more > 0; more--) {
      await sleep(SAMPLE_MS);
      least = Math.min(least, await this.#usage());
    }
    this.bytes = least;
    this.#sampling = false;
  }

  async #usage(): Promise<number> {
    const { usedSize, backingStorageSize = 0 } = (await this.#ask("Runtime.getHeapUsage")) as HeapUsage;
    return usedSize + backingStorageSize;
  }

  close(): void {
    this.#socket.close();
  }

  #ask(method: string): Promise<unknown> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#answers.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, method }));
    });
  }
}
