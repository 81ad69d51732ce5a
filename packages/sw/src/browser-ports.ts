/**
 * What a client gets from the browser, in a worker or in a page.
 */
import { systemClock, systemSha256, type Decoder } from "@agarose/core";
import { eventChannel } from "./event-channel.ts";
import { fetchPort, telemetryPost } from "./network.ts";
import type { ClientPorts } from "./object-client.ts";
import { once } from "./once.ts";

/** https://wicg.github.io/savedata/: not in all browsers, and not in the compiler's types. */
type NavigatorWithConnection = Navigator & { readonly connection?: { readonly saveData?: boolean } };

export function browserPorts(codec: () => Promise<Decoder>): ClientPorts {
  return {
    fetch: fetchPort(globalThis.fetch.bind(globalThis)),
    post: telemetryPost(globalThis.fetch.bind(globalThis)),
    clock: systemClock,
    sha256: systemSha256,
    random: Math.random,
    codec: once(codec),
    emit: eventChannel(),
    savesData: () => (globalThis.navigator as NavigatorWithConnection | undefined)?.connection?.saveData === true,
  };
}
