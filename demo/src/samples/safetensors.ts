/** The header of a safetensors file: 8 bytes of little-endian length, then JSON of that length. */

export interface Tensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Its bytes are [start, end) of the file. */
  readonly start: number;
  readonly end: number;
}

const HEADER_BYTES_MAX = 10_000_000;

/** The tensors in file order, or undefined while too few bytes are there. Throws when it is no such file. */
export function parseTensors(head: Uint8Array): Tensor[] | undefined {
  if (head.length < 8) return undefined;
  const length = Number(new DataView(head.buffer, head.byteOffset).getBigUint64(0, true));
  if (length > HEADER_BYTES_MAX) throw new Error(`not a safetensors file: its header would have ${length} bytes`);
  const dataStart = 8 + length;
  if (head.length < dataStart) return undefined;
  const header = JSON.parse(new TextDecoder().decode(head.subarray(8, dataStart))) as Record<string, Entry>;
  return Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [start, end],
        },
      ]) => ({
        name,
        dtype,
        shape,
        start: dataStart + start,
        end: dataStart + end,
      }),
    )
    .toSorted((a, b) => a.start - b.start);
}

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}
