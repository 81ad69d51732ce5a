/** The local world as the page sees it: its control address and its state. */
import type { WorkerMessage } from "@agarose/sw";
import { ApiError, apiError } from "./api-error.ts";

export type KvState = "ok" | "down" | "slow" | "stale";

export interface RegionState {
  readonly name: string;
  readonly down: boolean;
  readonly latencyFactor: number;
  readonly corrupt: number;
  /** From the place of the client, without faults. */
  readonly latencyMs: number;
}

export interface PopState {
  readonly name: string;
  readonly url: string;
  readonly down: boolean;
  readonly kv: KvState;
  readonly latencyMs?: number;
}

export interface WorldState {
  readonly client: { readonly near: string };
  readonly regions: readonly RegionState[];
  readonly pops: readonly PopState[];
  /** When runs of the Cron Trigger ended, oldest first, in milliseconds since 1970. */
  readonly cronRuns: readonly number[];
  readonly code: "auto" | { readonly k: number; readonly m: number };
  /** Multiplies every latency of the geography. */
  readonly scale: number;
}

/** The content of `/world.json`. */
export interface WorldFile {
  readonly control?: string;
  /** The CDN with whole copies next to each PoP. */
  readonly copies: Readonly<Record<string, string>>;
  readonly config: {
    readonly pops: readonly { readonly name: string; readonly url: string }[];
    readonly regions: readonly { readonly name: string; readonly url: string }[];
  };
}

/** The part of the status of a PoP that the page shows. */
export interface PopStatus {
  readonly pop: string;
  readonly cache: {
    readonly capacityBytes: number;
    readonly cachedBytes: number;
    readonly objects: readonly unknown[];
  };
  readonly ideas: readonly {
    readonly name: string;
    readonly atWork: boolean;
    readonly reason: string | null;
    readonly savedMs: number | null;
  }[];
  readonly spending: { readonly usd: number; readonly writes: number };
  /** Null before the first period. Without `regretMs` where nothing was read. */
  readonly lastPeriod: { readonly savings?: { readonly regretMs?: number } } | null;
}

const POLL_MS = 3000;

/** Keeps `state` fresh while the page is visible, and sends changes. Dispatches `change` and `problem`. */
export class DemoWorld extends EventTarget {
  readonly file: WorldFile;
  state: WorldState | undefined;
  /** Why the control address does not work. Undefined when it works. */
  problem: string | undefined;

  constructor(file: WorldFile) {
    super();
    this.file = file;
  }

  /** The region nearest to the client, which may be down. Undefined until the state is known. */
  get nearest(): RegionState | undefined {
    return this.state?.regions.toSorted((a, b) => a.latencyMs - b.latencyMs)[0];
  }

  async start(): Promise<void> {
    await this.#poll();
    setInterval(() => {
      if (document.visibilityState === "visible") void this.#poll();
    }, POLL_MS);
  }

  async moveClient(near: string): Promise<void> {
    await this.#change("client", { near });
    measureAgain();
  }

  setRegion(name: string, change: { down?: boolean; latencyFactor?: number; corrupt?: number }): Promise<void> {
    return this.#change(`regions/${name}`, change);
  }

  setPop(name: string, change: { down?: boolean; kv?: KvState }): Promise<void> {
    return this.#change(`pops/${name}`, change);
  }

  async reset(): Promise<void> {
    await this.#change("reset", {});
    measureAgain();
  }

  /** Runs the Cron Trigger of all PoPs. Resolves when they are done. */
  async cron(): Promise<void> {
    await this.#change("cron", {});
  }

  /** The status of every PoP. */
  async popStatuses(): Promise<readonly PopStatus[]> {
    return ((await this.#send("GET", "status")) as { pops: readonly PopStatus[] }).pops;
  }

  async #change(path: string, body: object): Promise<void> {
    const answer = await this.#send("POST", path, body);
    if (isState(answer)) this.#adopt(answer);
    else await this.#poll();
  }

  async #poll(): Promise<void> {
    try {
      const answer = await this.#send("GET", "state");
      if (!isState(answer)) throw new ApiError("CONTROL_ODD", "the control address answers with something else");
      this.#adopt(answer);
    } catch (error) {
      this.problem = (error as Error).message;
      this.dispatchEvent(new Event("change"));
    }
  }

  #adopt(state: WorldState): void {
    this.state = state;
    this.problem = undefined;
    this.dispatchEvent(new Event("change"));
  }

  async #send(method: "GET" | "POST", path: string, body?: object): Promise<unknown> {
    const { control } = this.file;
    if (!control) throw new ApiError("CONTROL_MISSING", "this page was started without a control address");
    const response = await fetch(`${control.replace(/\/$/, "")}/${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    }).catch((error: unknown) => {
      throw new ApiError("CONTROL_SILENT", `the control address ${control} does not answer (${String(error)})`);
    });
    if (!response.ok) throw await apiError(response);
    return await response.json();
  }
}

/** Makes the service worker measure again, because it cannot notice that the client has moved. */
function measureAgain(): void {
  navigator.serviceWorker?.controller?.postMessage({ agarose: "probe" } satisfies WorkerMessage);
}

function isState(value: unknown): value is WorldState {
  return typeof value === "object" && value !== null && "regions" in value && "pops" in value && "client" in value;
}
