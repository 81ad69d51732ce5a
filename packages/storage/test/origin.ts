/** A bucket of plain objects on an S3 endpoint of its own, which can lie, and a deployment that begins with it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { startS3Endpoint } from "@agarose/dev-world/s3-endpoint";
import type { PutOptions } from "../src/buckets/store.ts";
import { openOrigin } from "../src/buckets/stores.ts";
import { configOfFields } from "../src/config/config.ts";
import { KEYS, startThreeRegions } from "./three-regions.ts";

/** Answers a request for an object itself, or changes something before it is answered. */
export type OriginFault = (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>;

/** Return value of `startWithOrigin`. */
export type WithOrigin = Awaited<ReturnType<typeof startWithOrigin>>;

/** Starts three empty regions, and an origin with the buckets `plain`, which it names, and `spare`. */
export async function startWithOrigin() {
  const world = await startThreeRegions();
  const fault: Record<"answer" | "list" | "head", OriginFault | undefined> & { fired: number } = {
    answer: undefined,
    list: undefined,
    head: undefined,
    fired: 0,
  };
  const endpoint = await startS3Endpoint({
    ...KEYS,
    buckets: ["plain", "spare"],
    async intercept(request, response) {
      if (request.method !== "GET" && request.method !== "HEAD") return false;
      const ofGet = request.url!.includes("list-type") ? fault.list : fault.answer;
      const answer = request.method === "HEAD" ? fault.head : ofGet;
      const isAnswered = (await answer?.(request, response)) ?? false;
      if (isAnswered) fault.fired++;
      return isAnswered;
    },
  });
  const fields = { ...world.config, origin: { endpoint: endpoint.url, bucket: "plain" } };
  const config = configOfFields(fields, "test");
  const origin = openOrigin(config, {})!;
  let stopped: Promise<void> | undefined;
  return {
    ...world,
    fields,
    config,
    origin,
    fault,
    /** Puts a plain object, as a program does that knows nothing of the regions. */
    async put(name: string, content: string | Uint8Array, more: Partial<PutOptions> = {}): Promise<void> {
      const bytes = Buffer.from(content);
      await origin.put(name, bytes, { bytes: bytes.length, contentType: "text/plain", ...more });
    },
    /** Ends the origin, and with it every connection. */
    stop: () => (stopped ??= endpoint.close()),
    async close(): Promise<void> {
      origin.close();
      await this.stop();
      await world.close();
    },
  };
}
