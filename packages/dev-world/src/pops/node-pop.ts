/** A PoP on Node in a local world. A module of its own, because it replaces modules of Cloudflare's runtime. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPop } from "@agarose/pop";

/** A running PoP on Node. */
export type NodePop = Awaited<ReturnType<typeof startNodePop>>;

/** Starts the PoP `name` with the variables of the Worker, in a folder that ends with it. Only `cron` runs periods. */
export async function startNodePop(name: string, variables: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), "agarose-node-pop-"));
  // All clients of a local world have one address.
  const own = { FILL_CLIENTS_MIN: "1", ...variables, POP: name };
  const pop = await startPop({ variables: own, folder, periodMs: 0 });
  return {
    name,
    url: pop.url,
    /** Runs a period. */
    cron: () => pop.runPeriod(),
    async close() {
      await pop.close(0);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
