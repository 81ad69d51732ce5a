/** Sends requests to the control address of a world. */
import { encodeKey } from "@agarose/core/format";
import type { LinkFaults, LinkRecord } from "../world/wan-link.ts";
import type { KvState } from "../pops/kv-fault.ts";

/** The answer of `GET /state`. */
export interface ControlState {
  readonly client: { readonly near: string; readonly mbit: number };
  readonly regions: readonly (LinkFaults & { readonly name: string; readonly latencyMs: number })[];
  readonly pops: readonly {
    readonly name: string;
    readonly down: boolean;
    readonly kv: KvState;
    readonly kvFired: number;
    readonly latencyMs: number;
  }[];
  readonly code: "auto" | { readonly k: number; readonly m: number };
  readonly scale: number;
}

/** A whole copy of an object, as the client reaches it. */
export interface WholeCopy {
  readonly region: string;
  readonly url: string;
}

/** A control address. Every method rejects with the address's own message when it refuses a request. */
export class ControlClient {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  /** Returns faults and latencies. */
  state(): Promise<ControlState> {
    return this.#request("GET", "/state") as Promise<ControlState>;
  }

  /** Returns the requests over all links since the last reset. */
  async log(): Promise<LinkRecord[]> {
    return ((await this.#request("GET", "/log")) as { records: LinkRecord[] }).records;
  }

  async post(path: string, change?: object): Promise<void> {
    await this.#request("POST", path, change && JSON.stringify(change));
  }

  async put(key: string, content: Uint8Array, headers: Readonly<Record<string, string>>): Promise<void> {
    await this.#request("PUT", `/objects/${encodeKey(key)}`, content as BodyInit, headers);
  }

  /** Stores a whole copy of an object in the region nearest to the client. */
  copy(key: string): Promise<WholeCopy> {
    return this.#request("POST", `/copies/${encodeKey(key)}`) as Promise<WholeCopy>;
  }

  async #request(method: string, path: string, body?: BodyInit, headers = {}): Promise<unknown> {
    const response = await fetch(this.url + path, { method, headers, ...(body === undefined ? {} : { body }) });
    const answer = (await response.json()) as { error?: { message: string } };
    if (!response.ok) throw new Error(`${method} ${path}: ${answer.error?.message}`);
    return answer;
  }
}
