/** Writes the video sample again as playlists and pieces of HLS, without encoding it again. */
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

/** Of the film in each piece. */
export const PIECE_SECONDS = 2;

const FILM = fileURLToPath(import.meta.resolve("@agarose/demo/samples/walk.mp4"));

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
    targetDuration: PIECE_SECONDS,
    singleFilePerPlaylist: asRanges,
  });
  const input = new Input({ source: new FilePathSource(FILM), formats: ALL_FORMATS });
  const output = new Output({ format, target });
  const conversion = await Conversion.init({ input, output, ...(end !== undefined && { trim: { start: 0, end } }) });
  await conversion.execute();
  return new Map([...files].map(([path, { buffer }]) => [path, new Uint8Array(buffer!)]));
}
