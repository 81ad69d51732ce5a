/** Runs versitygw, a real S3 server, for the conformance suite and as the buckets of a local world. */
import { spawn, type ChildProcess } from "node:child_process";
import { access, constants, mkdir, mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { CreateBucketCommand, PutBucketCorsCommand, PutBucketPolicyCommand, S3Client } from "@aws-sdk/client-s3";
import { AgaroseError } from "@agarose/core";
import { publicReadPolicy } from "@agarose/storage/buckets/public-read";
import { freePort } from "../free-port.ts";
import type { S3Endpoint } from "./s3-endpoint.ts";
import type { Credentials } from "@agarose/s3-server";

/** How versitygw is set up. */
export interface VersitygwOptions extends Credentials {
  readonly buckets: readonly string[];
  /** Folder of the data. Default: a temporary folder, which `close` removes. */
  readonly dir?: string;
  /** Whether objects can be read without credentials. Default: true. */
  readonly publicRead?: boolean;
  /** Whether pages of other origins can read, of buckets made later too. Default: true. */
  readonly cors?: boolean;
}

const START_MS_MAX = 15_000;
const INSTALL = "go install github.com/versity/versitygw/cmd/versitygw@latest";

/** The CORS rule that a web app needs: any origin reads ranges and sees these headers. */
const CORS_RULE = {
  AllowedOrigins: ["*"],
  AllowedMethods: ["GET", "HEAD", "PUT"],
  AllowedHeaders: ["*"],
  ExposeHeaders: ["Content-Range", "Content-Length", "Accept-Ranges", "ETag", "Date", "Last-Modified"],
  MaxAgeSeconds: 3600,
};

/**
 * Returns the path of the versitygw binary, from the PATH or from the folder of `go install`. Undefined without one.
 */
export async function findVersitygw(): Promise<string | undefined> {
  const goBin = process.env["GOBIN"] ?? join(process.env["GOPATH"] ?? join(homedir(), "go"), "bin");
  for (const folder of [...(process.env["PATH"] ?? "").split(delimiter), goBin]) {
    const path = join(folder, "versitygw");
    const problem = await access(path, constants.X_OK).catch((error: Error) => error);
    if (!problem) return path;
  }
  return undefined;
}

/** Starts versitygw and makes the buckets. Throws STORE_FAILED when it is not installed or does not come up. */
export async function startVersitygw(options: VersitygwOptions): Promise<S3Endpoint> {
  const binary = await findVersitygw();
  if (!binary) throw new AgaroseError("STORE_FAILED", `versitygw is not installed: run \`${INSTALL}\``);
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), "agarose-versitygw-")));
  await mkdir(dir, { recursive: true });
  const port = await freePort();
  // Without `--keep-alive`, because a connection that brought a body with a trailing checksum is at times misread then:
  // versitygw 1.8.0 answered 400 to a tenth of the requests that followed, on a busy machine.
  const server = spawn(
    binary,
    [
      "--quiet",
      "--port",
      `127.0.0.1:${port}`,
      "--health",
      "/health",
      ...(options.cors === false ? [] : ["--cors-allow-origin", "*"]),
      "posix",
      dir,
    ],
    {
      env: { ...process.env, ROOT_ACCESS_KEY: options.accessKeyId, ROOT_SECRET_KEY: options.secretAccessKey },
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  // The server ends when this process exits.
  const onExit = (): void => void server.kill();
  process.once("exit", onExit);
  const endpoint = {
    url: `http://127.0.0.1:${port}`,
    async close() {
      process.removeListener("exit", onExit);
      await stop(server);
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
    },
  };
  try {
    await untilHealthy(endpoint.url, server);
    await makeBuckets(endpoint.url, options);
    return endpoint;
  } catch (error) {
    await endpoint.close();
    throw error;
  }
}

async function untilHealthy(url: string, server: ChildProcess): Promise<void> {
  let stderr = "";
  server.stderr?.on("data", (text: Buffer) => (stderr = (stderr + text.toString()).slice(-2000)));
  const deadlineMs = Date.now() + START_MS_MAX;
  while (Date.now() < deadlineMs && server.exitCode === null && server.signalCode === null) {
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new AgaroseError("STORE_FAILED", `versitygw did not come up at ${url} in ${START_MS_MAX} ms: ${stderr}`, {
    url,
  });
}

async function makeBuckets(url: string, options: VersitygwOptions): Promise<void> {
  const { accessKeyId, secretAccessKey } = options;
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3Client({ endpoint: url, region: "us-east-1", forcePathStyle: true, credentials });
  for (const bucket of options.buckets) {
    await client.send(new CreateBucketCommand({ Bucket: bucket })).catch((error: Error) => {
      if (error.name !== "BucketAlreadyOwnedByYou") throw error;
    });
    if (options.cors !== false) {
      await client.send(new PutBucketCorsCommand({ Bucket: bucket, CORSConfiguration: { CORSRules: [CORS_RULE] } }));
    }
    if (options.publicRead === false) continue;
    await client.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy: publicReadPolicy(bucket) }));
  }
  client.destroy();
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  const kill = setTimeout(() => server.kill("SIGKILL"), 3000);
  await exited;
  clearTimeout(kill);
}
