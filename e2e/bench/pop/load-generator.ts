/**
 * Loads URLs over keep-alive connections, in a process of its own: `node load-generator.ts`, jobs come as messages.
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
  const one = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const received = await fetchOnce(urls[next++ % urls.length]!, agent);
      bytes += received;
      requests++;
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  agent.destroy();
  return { requests, bytes, seconds: (performance.now() - startMs) / 1000 };
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
