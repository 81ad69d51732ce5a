/** Shared by the benchmarks of `put` and `get`: an S3 server in its own process, and programs that use it. */
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const SERVER = fileURLToPath(new URL("s3-server.ts", import.meta.url));
const REGIONS = ["r0", "r1", "r2", "r3", "r4", "r5"];
const ENVIRONMENT = { ...process.env, AWS_ACCESS_KEY_ID: "bench", AWS_SECRET_ACCESS_KEY: "bench-secret" };

/** The buckets of the regions. */
export const REGION_BUCKETS: readonly string[] = REGIONS.map(bucketName);
/** The bucket beside those of the regions, into which the AWS SDK puts whole files. */
export const PLAIN_BUCKET = bucketName("plain");

/** A server that runs. */
export interface BenchServer {
  readonly url: string;
  /** Ends the server. Resolves to the requests that an embedded one has served. */
  close(): Promise<number>;
}

/** Starts `s3-server.ts` over the folder `dir`. An embedded one holds each request back for `delayMs`. */
export async function startBenchServer(kind: string, dir: string, delayMs = 0): Promise<BenchServer> {
  const buckets = [...REGION_BUCKETS, PLAIN_BUCKET];
  const child = spawn(process.execPath, [SERVER, kind, dir, ...buckets], {
    env: { ...ENVIRONMENT, BENCH_DELAY_MS: String(delayMs) },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value: url, done } = await lines.next();
  if (done) throw new Error(`the ${kind} S3 server ended before it was up`);
  return {
    url,
    async close() {
      child.stdin.end();
      const { value: requests } = await lines.next();
      await ended;
      return Number(requests);
    },
  };
}

/** Six regions in a server's buckets, as the command line's configuration lists them. */
export function regionsAt(endpoint: string): object[] {
  return REGIONS.map((name) => ({ name, provider: name, endpoint, bucket: bucketName(name) }));
}

/** Runs a Node program to its end, with the server's credentials. `onStart` receives its process. */
export async function runProgram(
  args: readonly string[],
  onStart: (child: ChildProcess) => void = () => {},
): Promise<void> {
  const child = spawn(process.execPath, args, { env: ENVIRONMENT, stdio: ["ignore", "ignore", "pipe"] });
  onStart(child);
  let stderr = "";
  child.stderr.on("data", (text: Buffer) => (stderr += text.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
}

function bucketName(region: string): string {
  return `bench-${region}`;
}
