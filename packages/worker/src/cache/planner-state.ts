/**
 * The planner's memory between periods, as bytes: the length of a JSON text (4 bytes, little-endian), that text (slots,
 * and the estimates of the plan), and the policy's own snapshot.
 */
import type { PlannerState } from "@agarose/solver/planner";

const FORMAT = 1;

interface StoredState extends Omit<PlannerState, "slots" | "snapshot"> {
  readonly format: number;
  /** Each placement once, because many objects share one. */
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

/** Returns the state as bytes. */
export function encodePlannerState({ slots, snapshot, ...rest }: PlannerState): Uint8Array {
  const placements = new Map<string, { index: number; placement: readonly string[] }>();
  const indexOf = (placement: readonly string[]): number => {
    const name = placement.join();
    const known = placements.get(name) ?? { index: placements.size, placement };
    placements.set(name, known);
    return known.index;
  };
  const stored: StoredSlot[] = slots.map(({ slot, d, content: { object, popularity, askedSeconds } }) => {
    const { key, version, k, m, placement, stripes, chunkBytes, shardBytes } = object;
    const at = indexOf(placement);
    return [slot, d, popularity, askedSeconds, key, version, k, m, at, stripes, chunkBytes, shardBytes];
  });
  const state: StoredState = {
    format: FORMAT,
    ...rest,
    placements: Array.from(placements.values(), ({ placement }) => placement),
    slots: stored,
  };
  const text = new TextEncoder().encode(JSON.stringify(state));
  const bytes = new Uint8Array(4 + text.length + (snapshot?.length ?? 0));
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  if (snapshot) bytes.set(snapshot, 4 + text.length);
  return bytes;
}

/** Returns the state, or undefined for bytes of another format: then the planner starts from nothing. */
export function decodePlannerState(bytes: Uint8Array): PlannerState | undefined {
  try {
    const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
    const text = new TextDecoder().decode(bytes.subarray(4, 4 + length));
    const { format, placements, slots, ...rest } = JSON.parse(text) as StoredState;
    if (format !== FORMAT) return undefined;
    return {
      ...rest,
      slots: slots.map(
        ([slot, d, popularity, askedSeconds, key, version, k, m, placement, stripes, chunkBytes, shardBytes]) => ({
          slot,
          d,
          content: {
            object: { key, version, k, m, placement: placements[placement]!, stripes, chunkBytes, shardBytes },
            popularity,
            askedSeconds,
          },
        }),
      ),
      snapshot: bytes.length > 4 + length ? bytes.slice(4 + length) : undefined,
    };
  } catch {
    return undefined;
  }
}
