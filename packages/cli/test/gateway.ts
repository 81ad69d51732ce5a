/** A gateway over six buckets, for tests. */
import { S3Client } from "@aws-sdk/client-s3";
import { BUCKET } from "@agarose/storage/gateway/bucket";
import { startGateway, type Gateway, type GatewayOptions } from "@agarose/storage/gateway/gateway";
import { lockFolder } from "@agarose/pop";
import { partsOf } from "@agarose/storage/parts";
import { presign, type PresignOptions } from "./presign.ts";
import { startTestWorld, type World } from "./world.ts";

/** The pair of keys of its clients. */
export const GATEWAY_KEYS = { accessKeyId: "client", secretAccessKey: "client-secret" };

export interface GatewayWorld {
  readonly world: World;
  readonly gateway: Gateway;
  readonly client: S3Client;
  close(): Promise<void>;
}

/** @param options of the gateway: who may ask, and the most bytes of bodies that wait on disk (1 GiB); of the world. */
export async function startGatewayWorld({
  credentials = GATEWAY_KEYS,
  spoolBytes = 2 ** 30,
  ...options
}: {
  credentials?: typeof GATEWAY_KEYS;
  spoolBytes?: number;
  stripeBytes?: number;
} = {}): Promise<GatewayWorld> {
  const world = await startTestWorld(options);
  const gateway = await gatewayOver(world, { pairs: [credentials], spoolBytes });
  const client = s3ClientOf(gateway, credentials);
  return {
    world,
    gateway,
    client,
    async close() {
      client.destroy();
      await gateway.close(0);
      await world.close();
    },
  };
}

/** A gateway over the buckets of a world. */
export function gatewayOver(
  { config, stores }: World,
  {
    uploads,
    ...options
  }: Partial<Pick<GatewayOptions, "pairs" | "spoolBytes" | "nowMs" | "domain">> & { readonly uploads?: string },
): Promise<Gateway> {
  const { signal } = new AbortController();
  const context = partsOf({ config, stores, signal });
  const usual = { pairs: [GATEWAY_KEYS] as const, spoolBytes: 2 ** 30, port: 0, host: "127.0.0.1" };
  const kept = uploads === undefined ? {} : { uploads: { dir: uploads, lock: lockFolder } };
  return startGateway({ ...usual, ...options, ...kept, context });
}

/** A client that signs with these keys, and tries each request once. */
export function s3ClientOf({ url }: Pick<Gateway, "url">, credentials = GATEWAY_KEYS, maxAttempts = 1): S3Client {
  return new S3Client({ region: "us-east-1", forcePathStyle: true, maxAttempts, endpoint: url, credentials });
}

/** A URL that a client has signed. Default: a GET of the bucket. */
export function signed({ url }: Pick<Gateway, "url">, asked: Partial<PresignOptions>): Promise<string> {
  const usual = { endpoint: url, bucket: BUCKET, key: "", method: "GET", credentials: GATEWAY_KEYS };
  return presign({ ...usual, ...asked });
}
