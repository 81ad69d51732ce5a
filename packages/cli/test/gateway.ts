/** A gateway over six buckets, for tests. */
import { acceptUnsigned } from "@agarose/core";
import { startGateway, type Gateway } from "../src/commands/gateway/server.ts";
import { loadCodec, loadEncoder } from "../src/lib/context.ts";
import { startTestWorld, type World } from "./world.ts";

/** The pair of keys of its clients. */
export const GATEWAY_KEYS = { accessKeyId: "client", secretAccessKey: "client-secret" };

export interface GatewayWorld {
  readonly world: World;
  readonly gateway: Gateway;
  close(): Promise<void>;
}

/** @param options of the gateway: who may ask, and the most bytes of bodies that wait on disk (1 GiB); of the world. */
export async function startGatewayWorld({
  credentials = GATEWAY_KEYS,
  spoolBytes = 2 ** 30,
  uploads,
  ...options
}: {
  credentials?: typeof GATEWAY_KEYS;
  spoolBytes?: number;
  uploads?: string;
  stripeBytes?: number;
} = {}): Promise<GatewayWorld> {
  const world = await startTestWorld(options);
  const { config, stores } = world;
  const { signal } = new AbortController();
  const context = {
    config,
    stores,
    signal,
    trust: acceptUnsigned,
    codec: loadCodec,
    encoder: loadEncoder,
    json: false,
  };
  const gateway = await startGateway({ credentials, port: 0, host: "127.0.0.1", spoolBytes, uploads, context });
  return {
    world,
    gateway,
    async close() {
      await gateway.close(0);
      await world.close();
    },
  };
}
