/** The table of ranges, over the service worker. */
import { expect } from "@playwright/test";
import { emptyObjectCases, mediaProbes, rangeCases, type RangeCase } from "@agarose/core/testing";
import type { AppPage } from "../fixtures/app-page.ts";
import { read, sha256 } from "../fixtures/app.ts";
import type { BrowserCase } from "./case.ts";

const BYTES = 300_000;

interface Seen {
  readonly status: number;
  readonly contentRange: string | null;
  readonly acceptRanges: string | null;
  readonly length: number;
  readonly sha256: string;
}

export const rangeCasesOverServiceWorker: readonly BrowserCase[] = [
  {
    name: "every request of the table of ranges is answered as the RFC says",
    async run({ folder, openControlledApp, putRandom }) {
      const content = await putRandom(`${folder}ranged`, BYTES);
      const page = await openControlledApp();
      const { headers } = await read(page, `${folder}ranged`);
      const cases = rangeCases({ bytes: BYTES, etag: headers["etag"]!, lastModified: headers["last-modified"]! });
      expect(await seenOf(page, `/ec/${folder}ranged`, cases)).toEqual(
        cases.map((request) => expectedOf(request, content)),
      );
    },
  },
  {
    name: "every range of an empty object is answered with all of it",
    async run({ folder, openControlledApp, putRandom }) {
      const content = await putRandom(`${folder}ranged-empty`, 0);
      const cases = emptyObjectCases();
      const seen = await seenOf(await openControlledApp(), `/ec/${folder}ranged-empty`, cases);
      expect(seen).toEqual(cases.map((request) => expectedOf(request, content)));
    },
  },
  {
    name: "the probes of a media element get their bytes of one version",
    async run({ folder, openControlledApp, putRandom }) {
      const content = await putRandom(`${folder}probed`, BYTES);
      const page = await openControlledApp();
      const etags = new Set<string | undefined>();
      for (const [start, end] of mediaProbes(BYTES)) {
        const answer = await read(page, `${folder}probed`, { range: `bytes=${start}-${end - 1}` });
        expect(answer).toMatchObject({ status: 206, bytes: end - start, sha256: sha256(content.subarray(start, end)) });
        expect(answer.headers["content-range"]).toBe(`bytes ${start}-${end - 1}/${BYTES}`);
        expect(answer.headers["content-length"]).toBe(String(end - start));
        etags.add(answer.headers["etag"]);
      }
      expect(etags.size).toBe(1);
    },
  },
];

/** Asks one after another. The text of an error in a body is omitted. */
function seenOf(page: AppPage, url: string, cases: readonly RangeCase[]): Promise<(Seen & { name: string })[]> {
  return page.evaluate(
    async ({ path, requests }) => {
      const seen = [];
      for (const { name, method, headers } of requests) {
        const response = await fetch(path, { method, headers, cache: "no-store" });
        const body = response.status === 416 ? new ArrayBuffer(0) : await response.arrayBuffer();
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
        seen.push({
          name,
          status: response.status,
          contentRange: response.headers.get("content-range"),
          acceptRanges: response.headers.get("accept-ranges"),
          length: body.byteLength,
          sha256: [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
        });
      }
      return seen;
    },
    { path: url, requests: cases.map(({ name, method, headers }) => ({ name, method, headers })) },
  );
}

function expectedOf({ name, expected }: RangeCase, content: Uint8Array): Seen & { name: string } {
  const body = content.subarray(...(expected.body ?? [0, 0]));
  const { status, contentRange } = expected;
  const acceptRanges = status === 416 ? null : "bytes";
  return { name, status, contentRange, acceptRanges, length: body.length, sha256: sha256(body) };
}
