/** Messages between PoPs on the wire: `POST /v1/peers`, signed. What is lost is made good by the next digest. */
import { AgaroseError, type Clock } from "@agarose/core";
import { withTimeout } from "../platform/async.ts";
import { MESSAGE_BYTES_MAX, parsePeerMessage, type PeerMessage } from "./peer-message.ts";
import type { Peer, PeerSettings } from "./peer-settings.ts";
import { claimOf, isSigned, signedHeaders } from "./signature.ts";

export const PEERS_PATH = "/v1/peers";
const SEND_MS = 3_000;

export interface Sending {
  readonly peer: Peer;
  readonly message: PeerMessage;
  readonly key: string;
  readonly clock: Clock;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

/** Rejects with SOURCE_FAILED or READ_TIMEOUT when the peer did not take it. */
export async function sendMessage({ peer, message, key, clock, fetch }: Sending): Promise<void> {
  const body = JSON.stringify(message);
  const headers = await signedHeaders({ ...signedPart(message), body }, key);
  const abort = new AbortController();
  const sending = fetch(`${peer.url}${PEERS_PATH}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body,
    redirect: "manual",
    signal: abort.signal,
  });
  try {
    const response = await withTimeout(sending, SEND_MS, clock, `telling PoP ${peer.name}`);
    await response.body?.cancel();
    if (response.status === 204) return;
    const { status } = response;
    throw new AgaroseError("SOURCE_FAILED", `PoP ${peer.name} refused a message with ${status}`, { status });
  } finally {
    abort.abort();
  }
}

/**
 * The message in a request, of whom it says it is. Throws FORBIDDEN for one that no peer has signed for us, and
 * REQUEST_INVALID for one that is too large, or signed and malformed.
 */
export async function openMessage(request: Request, pop: string, { pops, key }: PeerSettings): Promise<PeerMessage> {
  const claim = claimOf(request.headers);
  if (!claim || !pops.some(({ name }) => name === claim.from)) throw await forbidden(request, "it is from no peer");
  const body = await boundedText(request);
  const { from, sequence, signature } = claim;
  const signed = { method: "POST", path: PEERS_PATH, from, to: pop, sequence, body };
  if (!(await isSigned(signed, signature, key))) throw await forbidden(request, "the signature is not one of it");
  const message = parsePeerMessage(body);
  const { node, statedMs } = message.cache;
  if (message.to === pop && node === from && statedMs === sequence) return message;
  throw new AgaroseError(
    "REQUEST_INVALID",
    `message ${statedMs} of ${node} to ${message.to} was signed as ${sequence} of ${from} to ${pop}`,
  );
}

function signedPart({ to, cache }: PeerMessage) {
  return { method: "POST", path: PEERS_PATH, from: cache.node, to, sequence: cache.statedMs };
}

/** Its declared length decides, which the platform holds a sender to. */
async function boundedText(request: Request): Promise<string> {
  const bytes = Number(request.headers.get("content-length") ?? Number.NaN);
  if (bytes <= MESSAGE_BYTES_MAX) return request.text();
  await request.body?.cancel();
  throw new AgaroseError(
    "REQUEST_INVALID",
    `message of ${Number.isNaN(bytes) ? "unknown length" : `${bytes} bytes`}: at most ${MESSAGE_BYTES_MAX} are taken`,
    { bytes, max: MESSAGE_BYTES_MAX },
  );
}

async function forbidden(request: Request, problem: string): Promise<AgaroseError> {
  if (!request.bodyUsed) await request.body?.cancel();
  return new AgaroseError("FORBIDDEN", `this route takes messages of peers, signed with PEER_KEY: ${problem}`);
}
