/** PoPs on Node in place of those in workerd, for the suites that both runtimes must pass. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Pops } from "@agarose/dev-world/pops";
import { startPopProcess, valuesOnDisk, type PopProcess } from "@agarose/pop/test";
import type { ValueStore } from "../src/runtime/storage-ports.ts";

/** One PoP to start. */
export interface NodePopOptions {
  readonly name: string;
  readonly vars: Readonly<Record<string, string>>;
}

/** Running PoPs, as suites of both runtimes use them. */
export interface ContractPops extends Pick<Pops, "pops" | "cron" | "setFault" | "fault" | "dispose"> {
  /** Where the PoP keeps its chunks and configuration. Read and changed while the PoP runs. */
  values(name: string): Promise<ValueStore>;
  /** Throws on Node. */
  readonly miniflare: Pops["miniflare"];
}

/** Starts each PoP in a process and its own folder. */
export async function startNodePops(
  options: readonly NodePopOptions[],
  onLog: (line: string) => void,
): Promise<ContractPops> {
  const parent = await mkdtemp(join(tmpdir(), "agarose-pop-test-"));
  const processes = new Map<string, PopProcess>();
  const dispose = async (): Promise<void> => {
    for (const pop of processes.values()) await pop.kill();
    await rm(parent, { recursive: true, force: true });
  };
  try {
    for (const { name, vars } of options) {
      const start = { variables: { POP: name, ...vars }, folder: join(parent, name), periodMs: 0, behindProxy: true };
      processes.set(name, await startPopProcess(start, onLog));
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  const unsupported = (): never => {
    throw new Error("this suite needs workerd");
  };
  return {
    pops: [...processes].map(([name, { url }]) => ({ name, url })),
    async cron(only) {
      const chosen = [...processes].filter(([name]) => only === undefined || name === only);
      await Promise.all(chosen.map(([, pop]) => pop.runPeriod()));
    },
    values: async (name) => valuesOnDisk(join(parent, name)),
    setFault: unsupported,
    fault: unsupported,
    get miniflare(): never {
      return unsupported();
    },
    dispose,
  };
}

/** Whether this run of the suites is over PoPs on Node. */
export function isOnNode(): boolean {
  return process.env["POP_RUNTIME"] === "node";
}

/** Adds the accessor of values to PoPs in workerd. */
export function inWorkerd(pops: Pops): ContractPops {
  return Object.assign(pops, {
    values: async (name: string) => (await pops.miniflare.getKVNamespace("CHUNKS", name)) as unknown as ValueStore,
  });
}
