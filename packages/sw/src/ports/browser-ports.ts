/** The browser as a client uses it, in a worker or in a page. */
import { systemClock, systemSha256, type Decoder, type FetchPort } from "@agarose/core";
import { once } from "@agarose/core/async";
import { eventChannel } from "./event-channel.ts";
import type { ClientPorts } from "../client/client-ports.ts";
import { savesData } from "./saves-data.ts";

/** The part of ServiceWorkerGlobalScope by which a worker is updated. */
interface Updatable {
  readonly registration: { update(): Promise<unknown> };
}

/** Returns the ports of this page or worker. `codec` is called once, when something must be decoded. */
export function browserPorts(codec: () => Promise<Decoder>): ClientPorts {
  const fetch = globalThis.fetch.bind(globalThis);
  // A page has no registration. A worker looks once: what it finds waits until the pages close, or ask for it.
  const update = once(async () => (globalThis as Partial<Updatable>).registration?.update());
  return {
    fetch: fetchPort(fetch),
    clock: systemClock,
    sha256: systemSha256,
    random: Math.random,
    codec: once(codec),
    emit: eventChannel(),
    savesData,
    update: () => void update().catch(() => {}),
  };
}

/**
 * No cookies, no HTTP cache (Agarose keeps chunks itself), and no redirect to a host outside the configuration.
 *
 * @param fetch the global one; `globalThis.fetch` must not be called as a method of something else.
 */
export function fetchPort(fetch: typeof globalThis.fetch): FetchPort {
  return (url, init) => fetch(url, { ...init, cache: "no-store", credentials: "omit", redirect: "error" });
}
