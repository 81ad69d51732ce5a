/** Messages between PoPs on the wire: `POST /v1/peers`, signed. The next digest repairs what is lost. */
import { AgaroseError, type Clock } from "@agarose/core";
import type { PeerMessage } from "@agarose/solver/cooperation";
import { withTimeout } from "../runtime/async.ts";
import { parsePeerMessage } from "./peer-message.ts";
import type { Peer, PeerSettings } from "./peer-settings.ts";
import { claimOf, isSignedBy, signedHeaders } from "./signature.ts";

/** The route that takes messages. */
const PEERS_PATH = "/v1/peers";
const SEND_MS = 3_000;

/** A message and the way to its receiver. */
interface Sending {
  readonly peer: Peer;
  readonly message: PeerMessage;
  readonly key: string;
  readonly clock: Clock;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

/** Sends a message. Rejects with SOURCE_FAILED or READ_TIMEOUT unless the peer accepts it within three seconds. */
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
    const response = await withTimeout(sending, SEND_MS, clock, `a message to PoP ${peer.name}`);
    await response.body?.cancel();
    if (response.status === 204) return;
    const { status } = response;
    throw new AgaroseError("SOURCE_FAILED", `PoP ${peer.name} refused a message with ${status}`, { status });
  } finally {
    abort.abort();
  }
}

/**
 * Returns the message in a request whose body the caller has bounded. Throws FORBIDDEN unless a peer has signed it for
 * this PoP, and REQUEST_INVALID for a signed message that is malformed.
 */
export async function openMessage(request: Request, pop: string, { pops, key }: PeerSettings): Promise<PeerMessage> {
  const claim = claimOf(request.headers);
  if (!claim || !pops.some(({ name }) => name === claim.from))
    throw await forbidden(request, "the sender is not a peer");
  const body = await request.text();
  const { from, sequence, signature } = claim;
  const signed = { method: "POST", path: PEERS_PATH, from, to: pop, sequence, body };
  if (!(await isSignedBy(signed, signature, key))) throw await forbidden(request, "the signature does not match");
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

async function forbidden(request: Request, problem: string): Promise<AgaroseError> {
  if (!request.bodyUsed) await request.body?.cancel();
  return new AgaroseError("FORBIDDEN", `this route accepts messages of peers, signed with PEER_KEY: ${problem}`);
}
