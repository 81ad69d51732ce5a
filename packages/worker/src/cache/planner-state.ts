/**
 * The planner's memory between periods, as bytes: the length of the policy's own snapshot (4 bytes, little-endian), the
 * snapshot, and lines of JSON: the estimates of the plan, then some thousands of slots each. It comes in pieces, for a
 * Worker has no room for all of it at once beside the planner.
 */
import type { PlannerState } from "@agarose/solver/planner";

const FORMAT = 2;
const SLOTS_A_LINE = 4_096;

interface StoredSlots {
  /** Placements that no line before has. Each comes once, because many objects share one. */
  readonly placements: readonly (readonly string[])[];
  readonly slots: readonly StoredSlot[];
}

type StoredSlot = readonly [
  slot: number,
  d: number,
  popularity: number,
  askedSeconds: number,
  key: string,
  version: string,
  k: number,
  m: number,
  placement: number,
  stripes: number,
  chunkBytes: number,
  shardBytes: number,
];

/** Yields the bytes of the state. */
export function* encodePlannerState({ slots, snapshot, ...rest }: PlannerState): Generator<Uint8Array> {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, snapshot?.length ?? 0, true);
  yield length;
  if (snapshot) yield snapshot;
  const encoder = new TextEncoder();
  yield encoder.encode(JSON.stringify({ format: FORMAT, ...rest }));
  const known = new Map<string, number>();
  for (let from = 0; from < slots.length; from += SLOTS_A_LINE) {
    const placements: (readonly string[])[] = [];
    const indexOf = (placement: readonly string[]): number => {
      const name = placement.join();
      const index = known.get(name) ?? known.size;
      if (index === known.size) placements.push(placement);
      known.set(name, index);
      return index;
    };
    const stored = slots.slice(from, from + SLOTS_A_LINE).map(({ slot, d, content }): StoredSlot => {
      const { object, popularity, askedSeconds } = content;
      const { key, version, k, m, placement, stripes, chunkBytes, shardBytes } = object;
      const at = indexOf(placement);
      return [slot, d, popularity, askedSeconds, key, version, k, m, at, stripes, chunkBytes, shardBytes];
    });
    yield encoder.encode(`\n${JSON.stringify({ placements, slots: stored } satisfies StoredSlots)}`);
  }
}

/** Returns the state, or undefined for bytes of another format: then the planner starts from nothing. */
export function decodePlannerState(bytes: Uint8Array): PlannerState | undefined {
  try {
    const from = 4 + new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
    const [first = "", ...lines] = new TextDecoder().decode(bytes.subarray(from)).split("\n");
    const { format, ...rest } = JSON.parse(first) as Omit<PlannerState, "slots" | "snapshot"> & { format: number };
    if (format !== FORMAT) return undefined;
    const placements: (readonly string[])[] = [];
    const slots = lines.flatMap((line) => {
      const { placements: others, slots: stored } = JSON.parse(line) as StoredSlots;
      placements.push(...others);
      return stored.map(
        ([slot, d, popularity, askedSeconds, key, version, k, m, placement, stripes, chunkBytes, shardBytes]) => {
          const object = { key, version, k, m, placement: placements[placement]!, stripes, chunkBytes, shardBytes };
          return { slot, d, content: { object, popularity, askedSeconds } };
        },
      );
    });
    return { ...rest, slots, snapshot: from > 4 ? bytes.slice(4, from) : undefined };
  } catch {
    return undefined;
  }
}
