/**
 * Loads URLs over keep-alive connections, in its own process: `node load-generator.ts`, jobs come as messages.
 */
import { Agent, get } from "node:http";

export interface Job {
  /** Asked for in turn. */
  readonly urls: readonly string[];
  readonly connections: number;
  readonly seconds: number;
}

export interface JobResult {
  readonly requests: number;
  readonly bytes: number;
  /** From the first request to the last answer. */
  readonly seconds: number;
  /** The time that 99 of 100 requests took at most, to the last byte, in milliseconds. */
  readonly p99Ms: number;
}

process.on("message", (job: Job) => {
  run(job).then(
    (result) => process.send!(result),
    (error: unknown) => process.send!({ error: String(error) }),
  );
});

async function run({ urls, connections, seconds }: Job): Promise<JobResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const startMs = performance.now();
  const untilMs = startMs + seconds * 1000;
  let next = 0;
  let requests = 0;
  let bytes = 0;
  const times: number[] = [];
  const one = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const sentMs = performance.now();
      const received = await fetchOnce(urls[next++ % urls.length]!, agent);
      times.push(performance.now() - sentMs);
      bytes += received;
      requests++;
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  agent.destroy();
  const tookSeconds = (performance.now() - startMs) / 1000;
  const p99Ms = times.toSorted((a, b) => a - b)[Math.floor(0.99 * times.length)] ?? 0;
  return { requests, bytes, seconds: tookSeconds, p99Ms };
}

/** Counts the bytes of a body and drops them. */
function fetchOnce(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      let bytes = 0;
      response.on("data", (part: Buffer) => (bytes += part.length));
      response.on("end", () =>
        response.statusCode === 200 ? resolve(bytes) : reject(new Error(`${url} answered ${response.statusCode}`)),
      );
      response.on("error", reject);
    }).on("error", reject);
  });
}
