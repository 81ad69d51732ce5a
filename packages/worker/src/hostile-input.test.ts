/** Any input of clients, peers and KV values to a PoP ends in a typed error or counts as nothing. */
import { offencesOf } from "@agarose/core/testing";
import { expect, test, vi } from "vitest";
import { decodePlannerState } from "./cache/planner-state.ts";
import { checkAccess, parseAccessSettings } from "./http/access.ts";
import { parsePurge } from "./http/routes/purge.ts";
import { parsePeerMessage } from "./peers/peer-message.ts";
import { parsePeersInForce } from "./peers/peers-snapshot.ts";
import { CONFIGURATION_EMPTY, formatConfiguration, parseConfiguration } from "./cache/configuration.ts";

// The routes import the Durable Objects, which exist in workerd only. No parser needs them.
vi.mock("cloudflare:workers", () => ({ DurableObject: Object }));

const secret = "0123456789abcdef0123456789abcdef";
const access = parseAccessSettings({ PRIVATE_PREFIXES: '["a/"]', READ_TOKEN: secret, SIGNING_KEY: secret });

const asked = { key: "a/b", nowMs: 0, query: new URLSearchParams(), authorization: undefined };

const locked = new URLSearchParams(`password&expires=1&signature=${"0".repeat(64)}`);
const linkOf = (prefix: string) => new URLSearchParams({ prefix, expires: "1", signature: "0".repeat(64) });

const CONFIGURED = { ...CONFIGURATION_EMPTY, cached: new Map([["v", { key: "a", chunks: [0], stripes: 1 }]]) };

test.each<[what: string, parse: (bytes: Uint8Array, text: string) => unknown, sample?: object]>([
  ["a bearer token", (_, text) => checkAccess({ ...asked, authorization: `Bearer ${text}` }, access)],
  ["a password", (_, text) => checkAccess({ ...asked, query: locked, authorization: `Basic ${text}` }, access)],
  ["a signed URL", (_, text) => checkAccess({ ...asked, query: new URLSearchParams(`signature=${text}`) }, access)],
  ["when a URL expires", (_, text) => checkAccess({ ...asked, query: new URLSearchParams(`expires=${text}`) }, access)],
  ["a prefix of a URL", (_, prefix) => checkAccess({ ...asked, query: linkOf(prefix) }, access)],
  ["a purge", (_, text) => parsePurge(text), { keys: ["a"], prefix: "b/" }],
  ["a peer's message", (_, text) => parsePeerMessage(text)],
  ["the configuration", (_, text) => parseConfiguration(text), JSON.parse(formatConfiguration(CONFIGURED))],
  ["the peers in force", (_, text) => parsePeersInForce(text), { epoch: 1, peers: [] }],
  ["the planner's state", (bytes) => decodePlannerState(bytes)],
])("%s: hostile bytes end in a typed error, in bounded time", { timeout: 300_000 }, async (_, parse, sample) => {
  expect(await offencesOf(parse, sample)).toEqual([]);
});
