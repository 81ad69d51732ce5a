/** Sends one chunk, and says how far it is, which `fetch` cannot. */
import { AgaroseError } from "@agarose/core";

/** Where a chunk goes. */
export interface ChunkPlace {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Resolves with the status of the answer. Rejects where there is none, and when `signal` aborts. */
export type SendChunk = (
  place: ChunkPlace,
  chunk: Blob,
  options: { readonly onSent: (bytes: number) => void; readonly signal?: AbortSignal | undefined },
) => Promise<number>;

/** A region that takes nothing and says nothing for so long does not answer. */
const IDLE_MS = 30_000;

/** `SendChunk` of browsers, in a page or a worker. */
export const sendByXhr: SendChunk = ({ url, headers }, chunk, { onSent, signal }) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const fail = (problem: string): void => reject(new AgaroseError("STORE_FAILED", problem));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => request.abort(), IDLE_MS);
    };
    const abort = (): void => request.abort();
    request.open("PUT", url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", ({ loaded }) => {
      wait();
      onSent(loaded);
    });
    request.addEventListener("load", () => resolve(request.status));
    request.addEventListener("error", () => fail(`no answer from ${new URL(url).host}`));
    request.addEventListener("abort", () => fail(`${new URL(url).host} took nothing for ${IDLE_MS / 1000} s`));
    request.addEventListener("loadend", () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    });
    signal?.addEventListener("abort", abort);
    wait();
    request.send(chunk);
  });
