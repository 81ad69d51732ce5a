/**
 * * Messages that a PoP accepts and refuses: ones that are forged, replayed or garbage, clocks that are wrong, keys
 * that are private.
 */
import type { PeerMessage } from "@agarose/solver/cooperation";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MESSAGE_BYTES_MAX } from "./peer-message.ts";
import { signedHeaders, type SignedPeerRequest } from "./signature.ts";
import { PEER_KEY, startPeersWorld, type PeersWorld } from "../../test/peers-world.ts";
import { randomBytes } from "../../test/world.ts";

const PATH = "/v1/peers";
const READ_TOKEN = "a token for all readers";
const SIGNING_KEY = "a key that signs links";
const MEMBER = { headers: { authorization: `Bearer ${READ_TOKEN}` } };
const CONTENT = randomBytes(100_000, 3);
const VERSION = "f".repeat(32);

let world: PeersWorld;
beforeAll(async () => {
  world = await startPeersWorld({ PRIVATE_PREFIXES: '["members/"]', READ_TOKEN, SIGNING_KEY });
  await world.pops.cron();
});
afterAll(() => world.close());

/** A message of Washington to Frankfurt, in which it claims to hold `chunks`. */
function message(statedMs: number, chunks: number[], isComplete = false): PeerMessage {
  const statements = [{ key: VERSION, chunks, hits: 0, readMs: statedMs }];
  const epoch = Number.MAX_SAFE_INTEGER;
  return {
    to: "fra",
    turn: 0,
    configuration: 1,
    cache: { node: "iad", epoch, statedMs, isComplete, statements },
  };
}

async function post(body: string, signed: Partial<SignedPeerRequest> = {}, key = PEER_KEY): Promise<Response> {
  const sequence = (JSON.parse(body) as PeerMessage).cache?.statedMs ?? 1;
  const request = { method: "POST", path: PATH, from: "iad", to: "fra", sequence, body, ...signed };
  return fetch(`${world.url("fra")}${PATH}`, { method: "POST", body, headers: await signedHeaders(request, key) });
}

const send = (sent: PeerMessage): Promise<Response> => post(JSON.stringify(sent));

async function code(response: Response): Promise<string> {
  return `${response.status} ${((await response.json()) as { error: { code: string } }).error.code}`;
}

async function known(): Promise<number> {
  const { peers } = await world.status("fra");
  return peers!.peers.find(({ name }) => name === "iad")!.objects;
}

describe("a message", () => {
  test("with no signature, another's, or one of something else is refused, and changes nothing", async () => {
    const before = await known();
    const body = JSON.stringify(message(1, [1]));
    const unsigned = await fetch(`${world.url("fra")}${PATH}`, { method: "POST", body });
    expect(await code(unsigned)).toBe("403 FORBIDDEN");
    expect(await code(await post(body, {}, "a key that somebody guessed"))).toBe("403 FORBIDDEN");
    expect(await code(await post(body, { to: "lhr" })), "made for another PoP").toBe("403 FORBIDDEN");
    expect(await code(await post(body, { body: `${body} ` })), "of another body").toBe("403 FORBIDDEN");
    expect(await code(await post(body, { method: "GET" })), "of another method").toBe("403 FORBIDDEN");
    expect(await code(await post(body, { from: "ams" })), "of no peer").toBe("403 FORBIDDEN");
    expect(await known()).toBe(before);
  });

  test("that is signed and garbage is refused with a reason, and changes nothing", async () => {
    const before = await known();
    const sound = message(2, [1]);
    expect(await code(await post('{"cache":{"statedMs":2}}'))).toBe("400 REQUEST_INVALID");
    expect(await code(await post(JSON.stringify({ ...sound, turn: "soon" })))).toBe("400 REQUEST_INVALID");
    expect(await code(await send({ ...message(2, [300]) }))).toBe("400 REQUEST_INVALID");
    expect(await code(await post(JSON.stringify({ ...sound, to: "lhr" })))).toBe("400 REQUEST_INVALID");
    expect(await code(await post(JSON.stringify(sound), { from: "lhr" })), "in another's name").toBe(
      "400 REQUEST_INVALID",
    );
    const long = JSON.stringify({ ...sound, padding: "x".repeat(MESSAGE_BYTES_MAX) });
    expect(await code(await post(long))).toBe("400 REQUEST_INVALID");
    expect(await known()).toBe(before);
  });

  test("counts once, whenever it is sent again, and however wrong the sender's clock is", async () => {
    const skewMs = 10 * 60_000;
    const late = message(Date.now() - skewMs, [1, 2]);
    expect((await send(late)).status, "from a clock ten minutes behind").toBe(204);
    expect(await known()).toBe(1);
    expect(await code(await send(late)), "replayed").toBe("400 REQUEST_INVALID");
    const evicted = message(Date.now() + skewMs, []);
    expect((await send(evicted)).status, "from one ten minutes ahead").toBe(204);
    expect(await known()).toBe(0);
    expect(await code(await send(late)), "replayed after it was overtaken").toBe("400 REQUEST_INVALID");
    expect(await code(await send(message(Date.now(), [1, 2, 3]))), "sent before, come after").toBe(
      "400 REQUEST_INVALID",
    );
    expect(await known()).toBe(0);
  });

  test("is refused by a PoP that has no peers", async () => {
    const alone = await startPeersWorld({}, { fra: { PEERS: "" } });
    try {
      const body = JSON.stringify(message(5, [1]));
      const headers = await signedHeaders(
        { method: "POST", path: PATH, from: "iad", to: "fra", sequence: 5, body },
        PEER_KEY,
      );
      expect(await code(await fetch(`${alone.url("fra")}${PATH}`, { method: "POST", body, headers }))).toBe(
        "403 FORBIDDEN",
      );
      expect((await alone.status("fra")).peers).toBeNull();
    } finally {
      await alone.close();
    }
  });
});

describe("the chunks of a private key", () => {
  test("are given only to peers, even to those whose clocks are minutes wrong", async () => {
    const key = "members/a";
    const { version } = await world.put(key, CONTENT);
    // Only a read by a member counts, and so has it cached.
    await (await fetch(`${world.url("fra")}/o/${key}`, MEMBER)).arrayBuffer();
    await world.pops.cron();
    const path = `/v1/chunk/${key}?version=${version}&stripe=0&chunk=0`;
    const get = async (skewMs?: number, from = "lhr", to = "fra"): Promise<number> => {
      const sequence = Date.now() + (skewMs ?? 0);
      const signed = { method: "GET", path, from, to, sequence, body: "" };
      const headers = skewMs === undefined ? {} : await signedHeaders(signed, PEER_KEY);
      return (await fetch(`${world.url("fra")}${path}`, { headers })).status;
    };
    expect(await get(0)).toBe(200);
    expect(await get(10 * 60_000)).toBe(200);
    expect(await get(-10 * 60_000)).toBe(200);
    expect(await get(-60 * 60_000), "an hour old").toBe(403);
    expect(await get(), "unsigned").toBe(403);
    expect(await get(0, "ams"), "of no peer").toBe(403);
    expect(await get(0, "lhr", "iad"), "made for another PoP").toBe(403);
  });

  test("are not given under a key that anybody may read, though that key has the same content", async () => {
    const secret = await world.put("members/b", randomBytes(50_000, 9));
    const mirror = await world.put("mirror", randomBytes(50_000, 9));
    await (await fetch(`${world.url("fra")}/o/members/b`, MEMBER)).arrayBuffer();
    await (await fetch(`${world.url("fra")}/o/mirror`)).arrayBuffer();
    await world.pops.cron();
    const status = async (key: string, { version } = secret): Promise<number> =>
      (await fetch(`${world.url("fra")}/v1/chunk/${key}?version=${version}&stripe=0&chunk=0`)).status;
    expect(await status("mirror", mirror), "it is cached").toBe(200);
    expect(await status("members/b")).toBe(403);
    expect(await status("mirror")).toBe(404);
    expect(await status("nothing")).toBe(404);
  });
});
