/**
 * A stored object as the source of a put, by the reader that all reads use: it verifies every shard, and holds the
 * window of one read in memory.
 */
import type { OpenedObject } from "@agarose/core/content";
import type { Manifest } from "@agarose/core/format";
import { openedContent } from "../encryption/secrets-of.ts";
import { openObject, type ReadParts } from "../objects/get-object.ts";
import type { Source, SourceReader } from "./file-source.ts";

/**
 * The plain content of the version that `manifest` names. Opening it throws as `openedContent` does, and reading it
 * as `openObject` does.
 */
export function objectSource(manifest: Manifest, context: ReadParts): Source {
  return { open: async () => objectReader(manifest, await openedContent(manifest, context.config), context) };
}

/** The stored bytes of the version that `manifest` names: its cells or segments, where it has them. */
export function storedSource(manifest: Manifest, context: ReadParts): Source {
  return { open: async () => objectReader(manifest, undefined, context) };
}

/** One read from the start to the end. Any other position begins another one, but a small object is kept. */
function objectReader(manifest: Manifest, opened: OpenedObject | undefined, context: ReadParts): SourceReader {
  const { bytes, sha256 } = opened?.shown ?? manifest;
  let stop = new AbortController();
  let parts: AsyncIterator<Uint8Array, unknown> | undefined;
  let rest: Uint8Array = new Uint8Array();
  let reached = 0;
  let whole: Buffer | undefined;

  const close = async (): Promise<void> => {
    stop.abort();
    // A body that is not read to its end would hold its requests.
    await parts?.return?.().catch(() => {});
    parts = undefined;
  };

  const begin = async (position: number): Promise<AsyncIterator<Uint8Array, unknown>> => {
    await close();
    stop = new AbortController();
    const wanted = { start: position, end: bytes };
    const signal = AbortSignal.any([context.signal, stop.signal]);
    const range = opened?.stored(wanted) ?? (position > 0 ? wanted : undefined);
    const { body } = await openObject(manifest, range, { ...context, signal });
    rest = new Uint8Array();
    reached = position;
    return (opened?.content(wanted, body) ?? body)[Symbol.asyncIterator]();
  };

  const readOn = async (target: Uint8Array, position: number): Promise<number> => {
    const wanted = Math.max(0, Math.min(target.length, bytes - position));
    if (wanted === 0) return 0;
    if (!parts || position !== reached) parts = await begin(position);
    let filled = 0;
    while (filled < wanted) {
      if (rest.length === 0) {
        const { done, value } = await parts.next();
        if (done) break;
        rest = value;
      }
      const part = rest.subarray(0, wanted - filled);
      target.set(part, filled);
      filled += part.length;
      rest = rest.subarray(part.length);
    }
    reached = position + filled;
    return filled;
  };

  return {
    known: { bytes, sha256 },
    async read(target, position) {
      if (bytes > manifest.stripeBytes) return readOn(target, position);
      if (!whole) {
        const content = Buffer.alloc(bytes);
        whole = content.subarray(0, await readOn(content, 0));
      }
      return whole.subarray(position).copy(target);
    },
    close,
  };
}
