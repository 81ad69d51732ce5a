/** Writes the video sample again as playlists and pieces of HLS, without encoding it again. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  ALL_FORMATS,
  BufferTarget,
  CmafOutputFormat,
  Conversion,
  FilePathSource,
  HlsOutputFormat,
  Input,
  Output,
  PathedTarget,
} from "mediabunny";
import { PIECES, VIDEO } from "./index.ts";

const FILM = fileURLToPath(new URL(VIDEO.file, import.meta.url));

/** How to cut the film. */
export interface PiecesOptions {
  /** Of the main playlist; the other files are beside it. */
  readonly key: string;
  /** Seconds of film. Default: all of it. */
  readonly end?: number;
  /** Whether the pieces of a playlist are ranges of one file. Default: each is a file. */
  readonly asRanges?: boolean;
}

/** Makes playlists and pieces, by their keys. */
export async function filmPieces({ key, end, asRanges = false }: PiecesOptions): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, BufferTarget>();
  const target = new PathedTarget(key, ({ path }) => {
    const file = new BufferTarget();
    files.set(path, file);
    return file;
  });
  const format = new HlsOutputFormat({
    segmentFormat: new CmafOutputFormat(),
    targetDuration: PIECES.seconds,
    singleFilePerPlaylist: asRanges,
  });
  const input = new Input({ source: new FilePathSource(FILM), formats: ALL_FORMATS });
  const output = new Output({ format, target });
  const conversion = await Conversion.init({ input, output, ...(end !== undefined && { trim: { start: 0, end } }) });
  await conversion.execute();
  return new Map([...files].map(([path, { buffer }]) => [path, new Uint8Array(buffer!)]));
}

/** Writes the files (6 MB) below `folder` by their keys. Returns these. */
export async function writePieces(folder: string): Promise<string[]> {
  const files = await filmPieces({ key: PIECES.key });
  for (const [key, bytes] of files) {
    const path = join(folder, key);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, bytes);
  }
  return [...files.keys()];
}
