/** `POST /v1/peers`: what another PoP says of its cache and of how things look from there (`peers/peer-message.ts`). */
import { AgaroseError } from "@agarose/core";
import type { Context } from "hono";
import type { AppEnv } from "../http.ts";
import { isolateOf } from "../../read/isolate.ts";
import { openMessage } from "../../peers/exchange.ts";
import { peerState } from "../../request-monitor/monitor-shards.ts";

/** 204 when it was news; FORBIDDEN unless a peer has signed it, REQUEST_INVALID when it is malformed, or old. */
export async function peerExchange(c: Context<AppEnv>): Promise<Response> {
  const { settings, peers: known } = isolateOf(c.env);
  const { pop, peers } = settings;
  if (!peers) throw new AgaroseError("FORBIDDEN", "this PoP has no peers: PEERS or PEER_KEY is not set");
  const message = await openMessage(c.req.raw, pop, peers);
  const inForce = await peerState(c.env).receive(message);
  if (inForce) {
    // This isolate need not wait for KV to say it.
    known.set(inForce);
    return new Response(null, { status: 204 });
  }
  const { node, epoch, statedMs } = message.cache;
  throw new AgaroseError(
    "REQUEST_INVALID",
    `message ${statedMs} of ${node} says nothing new: it was here before, or a later one was`,
    { from: node, epoch, sequence: statedMs },
  );
}
