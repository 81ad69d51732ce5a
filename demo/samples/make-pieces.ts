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

/** Writes the files (6 MB) below `folder` by their keys. Returns these. */
export async function writePieces(folder: string): Promise<string[]> {
  const files = new Map<string, BufferTarget>();
  const target = new PathedTarget(PIECES.key, ({ path }) => {
    const file = new BufferTarget();
    files.set(path, file);
    return file;
  });
  const format = new HlsOutputFormat({ segmentFormat: new CmafOutputFormat(), targetDuration: PIECES.seconds });
  const input = new Input({ source: new FilePathSource(FILM), formats: ALL_FORMATS });
  const conversion = await Conversion.init({ input, output: new Output({ format, target }) });
  await conversion.execute();
  for (const [key, { buffer }] of files) {
    const path = join(folder, key);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, new Uint8Array(buffer!));
  }
  return [...files.keys()];
}
