/**
 * The codec of the drop-in files. It is its own file, because it changes far less often than the reader: an update
 * of the worker then loads a quarter less.
 */
import { AgaroseError, type Decoder } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";
import { CODEC_FILE, CODEC_VERSION } from "../common/worker-files.ts";

/**
 * The global of `agarose-codec.js`, and how a classic worker loads it. A module worker imports it before the reader.
 */
export interface CodecScope {
  agaroseCodec?: { readonly version: number; readonly load: () => Promise<Decoder> };
  importScripts(url: string): void;
}

/**
 * Imports the codec from beside the worker's own file, unless that is done. A browser keeps with a worker what it has
 * imported before it was installed, and lets it import nothing else later, so this is to be called then.
 *
 * @throws CONFIG_INVALID, naming the file, when it is missing or of a version other than this reader needs.
 */
export async function importedCodec(): Promise<Decoder> {
  const scope = globalThis as unknown as CodecScope;
  try {
    if (!scope.agaroseCodec) scope.importScripts(CODEC_FILE);
  } catch (error) {
    throw invalid(HAS_MESSAGES && "cannot be imported", undefined, error);
  }
  const { version, load } = scope.agaroseCodec ?? {};
  if (version !== CODEC_VERSION || !load) throw invalid(HAS_MESSAGES && `is of version ${version}`, version);
  return load();
}

function invalid(problem: string | false, version: number | undefined, cause?: unknown): AgaroseError {
  return new AgaroseError(
    "CONFIG_INVALID",
    HAS_MESSAGES &&
      `${CODEC_FILE} ${problem}, and version ${CODEC_VERSION} is needed: serve it next to the worker's file. ` +
        `\`npx agarose init\` writes both; a module worker imports it first`,
    { file: CODEC_FILE, version, expected: CODEC_VERSION },
    cause,
  );
}
