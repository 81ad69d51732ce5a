/** Uploads of a page to a server and regions that the test plays. */
import { createHash, randomBytes } from "node:crypto";
import { javascriptCodec } from "@agarose/ec-wasm";
import { chunkBytes } from "@agarose/core/format";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { codeBlob, type BlobCode } from "./code-blob.ts";
import { uploadObject, type PutObjectOptions, type UploadMemory, type UploadPorts } from "./put-object.ts";

const LASTS_MS = 3_600_000;

/** A server with three regions, of which each chunk needs one. */
class Served {
  /** The chunks that the regions have, by the ticket's upload. */
  readonly uploads: Map<number, Blob>[] = [];
  readonly requests: string[] = [];
  /** The fault of a region in place of storing a chunk. */
  fault: (chunk: number, signal?: AbortSignal) => Promise<number | undefined> = async () => undefined;
  committed: { upload: number; sha256: string; leaves: number } | undefined;
  lostAnswers = 0;
  code: BlobCode | undefined;

  readonly ports: UploadPorts = {
    fetch: async (url, { method = "GET", body } = {}) => {
      const { pathname, searchParams } = new URL(String(url), "https://app.test");
      const [, upload, renewals] = /^\/v1\/uploads\/(\d+)-(\d+)$/.exec(pathname) ?? [];
      this.requests.push(`${method} ${pathname}`);
      if (upload === undefined) {
        const { bytes } = JSON.parse(body as string) as { bytes: number };
        if (bytes > 1_000_000) {
          const error = { code: "UPLOAD_REFUSED", message: "too long", details: { bytes } };
          return Response.json({ error }, { status: 403 });
        }
        this.code = { k: 2, m: 1, bytes, stripeBytes: 10_000, blockBytes: 65_536 };
        return Response.json(this.#grant(this.uploads.push(new Map()) - 1, 0));
      }
      if (method === "GET") return Response.json(this.#grant(Number(upload), Number(renewals) + 1));
      this.committed = {
        upload: Number(upload),
        sha256: searchParams.get("sha256")!,
        leaves: (body as Uint8Array).length,
      };
      if (this.lostAnswers-- > 0) throw new TypeError("the connection ended");
      return Response.json({ key: "a" });
    },
    send: async ({ url }, chunk, { onSent, signal }) => {
      const [upload, index] = url.split("/").map(Number) as [number, number];
      const status = await this.fault(index, signal);
      if (status !== undefined) return status;
      const stored = this.uploads[upload]!;
      if (stored.has(index)) return 412;
      stored.set(index, chunk);
      onSent(chunk.size);
      return 200;
    },
    code: (blob, code, onCoded) => codeBlob(blob, code, javascriptCodec(), onCoded),
  };

  #grant(upload: number, renewals: number): object {
    const stored = this.uploads[upload]!;
    const chunks = [0, 1, 2].map((chunk) => ({ url: `${upload}/${chunk}`, headers: {}, stored: stored.has(chunk) }));
    return { ticket: `${upload}-${renewals}`, lastsMs: LASTS_MS, coded: { ...this.code, needed: 2, chunks } };
  }
}

let served: Served;
let content: Buffer;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  served = new Served();
  content = randomBytes(25_001);
});

afterEach(() => void vi.useRealTimers());

function put(options: PutObjectOptions = {}, bytes: Uint8Array = content): Promise<object> {
  return settled(uploadObject("a", new Blob([bytes as Uint8Array<ArrayBuffer>]), options, served.ports));
}

/** Lets pauses pass at once. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  const state = { isSettled: false };
  const settle = (): void => void (state.isSettled = true);
  promise.then(settle, settle);
  while (!state.isSettled) {
    await vi.advanceTimersByTimeAsync(200);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return promise;
}

function memoryOf(items = new Map<string, string>()): UploadMemory & { readonly items: Map<string, string> } {
  return {
    items,
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, value) => void items.set(name, value),
    removeItem: (name) => void items.delete(name),
  };
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

test("chunks are sent, what they are made of is committed, and progress grows to the end", async () => {
  const progress: number[] = [];
  const onProgress = vi.fn<NonNullable<PutObjectOptions["onProgress"]>>(({ step, bytes, total }) => {
    progress.push((step === "send" ? 1 : 0) + bytes / total);
  });
  expect(await put({ onProgress })).toEqual({ key: "a" });
  expect(served.committed).toEqual({ upload: 0, sha256: sha256(content), leaves: 3 * 3 * 32 });
  const sizes = [...served.uploads[0]!.values()].map(({ size }) => size);
  expect(sizes).toEqual(Array(3).fill(chunkBytes(served.code!)));
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  expect(progress.at(-1)).toBe(2);
});

test("the data of chunks is that of the file, whose last stripe is padded", async () => {
  await put();
  const [first, second] = await Promise.all(
    [0, 1].map(async (chunk) => Buffer.from(await served.uploads[0]!.get(chunk)!.arrayBuffer())),
  );
  expect(first!.subarray(5_000, 10_000).equals(content.subarray(10_000, 15_000))).toBe(true);
  expect(second!.subarray(-2_501).equals(Buffer.concat([content.subarray(22_501), Buffer.alloc(1)]))).toBe(true);
});

test("a region that fails is tried again, and one that is down is done without", async () => {
  let failures = 0;
  served.fault = async (chunk) => (chunk === 1 || (chunk === 0 && failures === 0) ? (failures++, 500) : undefined);
  await put();
  expect([...served.uploads[0]!.keys()].toSorted()).toEqual([0, 2]);
  expect(failures, "the fault fired").toBeGreaterThan(3);
  served.fault = async (chunk) => (chunk > 0 ? 503 : undefined);
  served.committed = undefined;
  await expect(put()).rejects.toMatchObject({ code: "STORE_FAILED", details: { stored: 1, needed: 2 } });
  expect(served.committed).toBeUndefined();
});

test("a refusal of the server is its error", async () => {
  const refusal = { code: "UPLOAD_REFUSED", message: "too long", details: { bytes: 1_000_001 } };
  await expect(put({}, new Uint8Array(1_000_001))).rejects.toMatchObject(refusal);
});

test("an upload that was ended goes on with what is missing, in another page", async () => {
  const memory = memoryOf();
  const abort = new AbortController();
  served.fault = (chunk, signal) =>
    chunk === 0
      ? Promise.resolve(undefined)
      : new Promise((_, reject) => signal!.addEventListener("abort", () => reject(new Error("ended"))));
  const ended = put({ memory, signal: abort.signal });
  await vi.waitFor(() => expect(served.uploads[0]?.size).toBe(1));
  abort.abort(new Error("no more"));
  await expect(ended).rejects.toThrow("no more");
  expect(memory.items.size).toBe(1);
  const sent: number[] = [];
  served.fault = async (chunk) => void sent.push(chunk);
  await put({ memory });
  expect(sent).toEqual([1, 2]);
  expect(served.committed).toMatchObject({ upload: 0, sha256: sha256(content) });
  expect(memory.items.size).toBe(0);
});

test("the chunks of a changed file do not mix with those of the one before", async () => {
  const memory = memoryOf();
  served.fault = async (chunk) => (chunk > 0 ? 500 : undefined);
  await expect(put({ memory })).rejects.toMatchObject({ code: "STORE_FAILED" });
  served.fault = async () => undefined;
  const other = randomBytes(content.length);
  await put({ memory }, other);
  expect(served.committed).toMatchObject({ upload: 1, sha256: sha256(other) });
  expect(served.uploads[1]!.size).toBe(3);
});

test("a long upload gets new URLs before the old ones end, and nothing is asked after it", async () => {
  const memory = memoryOf();
  const { promise, resolve } = Promise.withResolvers<undefined>();
  served.fault = () => promise;
  const ended = uploadObject("a", new Blob([content as Uint8Array<ArrayBuffer>]), { memory }, served.ports);
  await vi.waitFor(() => expect(memory.items.size).toBe(1));
  await vi.advanceTimersByTimeAsync(LASTS_MS * 1.1);
  expect(served.requests.filter((request) => request.startsWith("GET"))).toEqual([
    "GET /v1/uploads/0-0",
    "GET /v1/uploads/0-1",
  ]);
  resolve(undefined);
  await ended;
  expect(served.requests.at(-1)).toBe("POST /v1/uploads/0-2");
  const asked = served.requests.length;
  await vi.advanceTimersByTimeAsync(LASTS_MS * 2);
  expect(served.requests.length).toBe(asked);
});

test("a commit whose answer is lost is sent again", async () => {
  served.lostAnswers = 1;
  expect(await put()).toEqual({ key: "a" });
  expect(served.requests.filter((request) => request.startsWith("POST /v1/uploads/0"))).toHaveLength(2);
});
