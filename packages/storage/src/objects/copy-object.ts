/**
 * Copies of objects. The bytes are read while they are stored, because the names of chunks have the key, and the code
 * or the secret of the copy may be another one.
 */
import type { Manifest, ManifestRecord } from "@agarose/core/format";
import { replacedMeanwhile } from "../commit/commit.ts";
import { shownManifest } from "../encryption/secrets-of.ts";
import { isChecksum, type Described } from "../upload/object-headers.ts";
import { objectSource } from "../upload/object-source.ts";
import type { ReadParts } from "./get-object.ts";
import { asBefore, type PutObject } from "./put-object.ts";

/** A copy of an object. */
export interface ObjectCopy extends Pick<PutObject, "key" | "onlyIf"> {
  /** Replacements of type and headers. Default: those of the object. Checksums stay with the bytes. */
  readonly described?: Described | undefined;
  /** Whether another version may be the current one. Default: a copy onto itself is of that. */
  readonly isOlder?: boolean;
  /** Replacements of the checksums. Default: those of the object. */
  readonly checksums?: Described["headers"] | undefined;
}

/**
 * The put that copies the object of `manifest`. A copy onto itself, with other headers, needs a manifest
 * alone where `putObject` finds the chunks in order, and rejects with REPLACED_MEANWHILE for any other version. It
 * throws as `shownManifest` does.
 */
export async function copyOf(
  manifest: Manifest,
  { key, described, checksums, isOlder = false, onlyIf }: ObjectCopy,
  context: ReadParts,
): Promise<PutObject> {
  const shown = await shownManifest(manifest, context.config);
  const [ofBytes, others] = [true, false].map((wanted) =>
    Object.fromEntries(Object.entries(shown.headers).filter(([name]) => isChecksum(name) === wanted)),
  );
  const isItself = key === manifest.key && !isOlder;
  const check = (current: Manifest | undefined, newest: ManifestRecord | undefined): void => {
    onlyIf?.(current, newest);
    if (isItself && newest?.generation !== manifest.generation) throw replacedMeanwhile(key);
  };
  return {
    key,
    source: objectSource(manifest, context),
    contentType: described?.contentType ?? shown.contentType,
    headers: { ...(described?.headers ?? others), ...(checksums ?? ofBytes) },
    force: false,
    ...asBefore(manifest),
    ...((onlyIf || isItself) && { onlyIf: check }),
  };
}
