/** PoPs of both kinds in one world: Workers in workerd, and PoPs on Node. */
import type { NodePop } from "./node-pop.ts";
import { startPops, type PopOptions, type Pops } from "./pops.ts";

/** The runtime of a PoP. */
export type PopRuntime = "workerd" | "node";

/** Running PoPs, in the part that both kinds have. */
export type MixedPops = Pick<Pops, "pops" | "cron" | "setFault" | "fault" | "dispose">;

/**
 * Starts PoPs, each on its runtime: on workerd where `runtimes` says nothing. Their storage ends with them. A PoP on
 * Node has no KV that could fail, so `setFault` rejects for it.
 */
export async function startMixedPops(
  options: readonly (Pick<PopOptions, "name" | "environment"> & { readonly vars: Readonly<Record<string, string>> })[],
  runtimes: readonly PopRuntime[],
): Promise<MixedPops> {
  const isNode = (index: number): boolean => runtimes[index] === "node";
  const workers = await startPops({ pops: options.filter((_, index) => !isNode(index)) });
  const onNode: NodePop[] = [];
  const dispose = async (): Promise<void> => {
    for (const { close } of onNode.splice(0)) await close();
    await workers.dispose();
  };
  try {
    for (const { name, vars } of options.filter((_, index) => isNode(index))) {
      const { startNodePop } = await import("./node-pop.ts");
      onNode.push(await startNodePop(name, vars));
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  const names = new Set(onNode.map(({ name }) => name));
  const urls = new Map([...workers.pops, ...onNode].map(({ name, url }) => [name, url]));
  return {
    pops: options.map(({ name }) => ({ name, url: urls.get(name)! })),
    async cron(only) {
      const here = onNode.filter(({ name }) => only === undefined || name === only).map(({ cron }) => cron());
      await Promise.all([...here, ...(only === undefined || !names.has(only) ? [workers.cron(only)] : [])]);
    },
    async setFault(name, fault) {
      if (!names.has(name)) return workers.setFault(name, fault);
      if (fault.kv !== "ok") throw new Error(`PoP ${name} runs on Node and has no KV that could be ${fault.kv}`);
    },
    fault: async (name) => (names.has(name) ? { kv: "ok", fired: 0 } : workers.fault(name)),
    dispose,
  };
}
