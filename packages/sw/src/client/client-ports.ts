/** The environment of a client, so that tests can replace the network, time and randomness. */
import type { Clock, Decoder, FetchPort, Random, Sha256 } from "@agarose/core";
import type { ReadEvent } from "../events/read-events.ts";
import type { ObjectStore } from "./object-store.ts";

/** The ports of one `ObjectClient`. */
export interface ClientPorts {
  readonly fetch: FetchPort;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly random: Random;
  /** Called when a read must decode. */
  readonly codec: () => Promise<Decoder>;
  readonly emit: (event: ReadEvent) => void;
  /**
   * Whether the user asks for little data (Save-Data). Reads then request exactly k chunks, and more only to replace
   * late ones.
   */
  readonly savesData: () => boolean;
  /** Looks for a newer service worker: called when an object's format is newer than this client. */
  readonly update?: () => void;
  /** Keeps what was read. */
  readonly store?: ObjectStore | undefined;
}
