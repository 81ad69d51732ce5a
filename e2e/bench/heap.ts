/** JavaScript heaps of a page and its service worker, or of an isolate of workerd, over the DevTools protocol. */
import { createServer, type AddressInfo } from "node:net";

export interface HeapWatch {
  /** Largest sum over all targets of used heap and array buffers, in bytes, above what it was at first. */
  stop(): number;
  /** The sum at first. */
  readonly before: number;
}

const SAMPLE_MS = 50;

/** A port that is free now, for `--remote-debugging-port`. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts to sample every page, service worker or isolate of the browser or workerd whose inspector listens on `port`. */
export async function watchHeap(port: number): Promise<HeapWatch> {
  const response = await fetch(`http://127.0.0.1:${port}/json/list`);
  const targets = (await response.json()) as { type: string; webSocketDebuggerUrl: string }[];
  const sessions = await Promise.all(
    targets
      .filter(({ type }) => ["page", "service_worker", "node"].includes(type))
      .map(({ webSocketDebuggerUrl }) => HeapSession.open(webSocketDebuggerUrl)),
  );
  for (const session of sessions) await session.sample();
  const sum = (): number => sessions.reduce((total, { bytes }) => total + bytes, 0);
  const before = sum();
  let peak = before;
  const timer = setInterval(() => {
    for (const session of sessions) void session.sample().then(() => (peak = Math.max(peak, sum())));
  }, SAMPLE_MS);
  return {
    before,
    stop() {
      clearInterval(timer);
      for (const session of sessions) session.close();
      return peak - before;
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
  #nextId = 1;
  #answered: ((usage: HeapUsage) => void) | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const { result } = JSON.parse(String(data)) as { result?: HeapUsage };
      if (result) this.#answered?.(result);
    });
  }

  static async open(url: string): Promise<HeapSession> {
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("error", () => reject(new Error(`${url} cannot be opened`)), { once: true });
    });
    return new HeapSession(socket);
  }

  /** Resolves when the answer is in `bytes`; a sample that is still under way is not doubled. */
  async sample(): Promise<void> {
    if (this.#answered) return;
    const answer = new Promise<HeapUsage>((resolve) => (this.#answered = resolve));
    this.#socket.send(JSON.stringify({ id: this.#nextId++, method: "Runtime.getHeapUsage" }));
    const { usedSize, backingStorageSize = 0 } = await answer;
    this.#answered = undefined;
    this.bytes = usedSize + backingStorageSize;
  }

  close(): void {
    this.#socket.close();
  }
}
