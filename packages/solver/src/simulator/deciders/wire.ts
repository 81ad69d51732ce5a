/** The network between simulated PoPs: messages take time, and some are lost. */
import * as v from "valibot";
import { number } from "../../checked.ts";
import type { Random } from "../../random.ts";
import type { PopSpec } from "../scenario/scenario.ts";

/** The settings of a system that say how messages travel. */
export const WIRE_SETTINGS = {
  /** Default: half of the latency between the two PoPs. */
  delayMs: v.optional(number(0)),
  lossProbability: v.optional(number(0, 1), 0),
};
const settingsSchema = v.object(WIRE_SETTINGS);
type WireSettings = v.InferOutput<typeof settingsSchema>;

interface Arrival<M> {
  readonly arrivesMs: number;
  readonly to: number;
  readonly message: M;
}

/** Half of the latency between PoPs that the scenario does not connect, twice. */
const UNKNOWN_LATENCY_MS = 200;

/** Carries messages of type M from PoP to PoP. */
export class Wire<M> {
  /** Messages sent so far, by sender, counting each recipient. */
  readonly sent: Float64Array;
  readonly #pops: readonly PopSpec[];
  readonly #settings: WireSettings;
  readonly #random: Random;
  readonly #receivers: readonly (readonly number[])[];
  #travelling: Arrival<M>[] = [];

  /** `receivers`: of each PoP, those that its messages go to. Default: all others. */
  constructor(
    pops: readonly PopSpec[],
    settings: WireSettings,
    random: Random,
    receivers: readonly (readonly number[])[] = pops.map((_, pop) => [...pops.keys()].filter((to) => to !== pop)),
  ) {
    this.#pops = pops;
    this.#settings = settings;
    this.#random = random;
    this.#receivers = receivers;
    this.sent = new Float64Array(pops.length);
  }

  /** When the next message arrives; Infinity while none travels. */
  get nextMs(): number {
    return this.#travelling.reduce((next, { arrivesMs }) => Math.min(next, arrivesMs), Infinity);
  }

  send(from: number, message: M, nowMs: number): void {
    const { delayMs, lossProbability } = this.#settings;
    for (const to of this.#receivers[from]!) {
      const { name } = this.#pops[to]!;
      this.sent[from]! += 1;
      if (this.#random.next() < lossProbability) continue;
      const travelMs = delayMs ?? (this.#pops[from]!.peerLatencyMs[name] ?? UNKNOWN_LATENCY_MS) / 2;
      this.#travelling.push({ arrivesMs: nowMs + travelMs, to, message });
    }
  }

  /** Takes the messages that have arrived by `nowMs`, in the order in which they were sent. */
  take(nowMs: number): Arrival<M>[] {
    const arrived = this.#travelling.filter(({ arrivesMs }) => arrivesMs <= nowMs);
    if (arrived.length > 0) this.#travelling = this.#travelling.filter(({ arrivesMs }) => arrivesMs > nowMs);
    return arrived;
  }
}
