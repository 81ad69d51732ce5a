/** `pdf.js`, as it is, shows pages of a long document by ranges. Its worker and its fonts are objects too. */
import { randomBytes } from "node:crypto";
import type * as pdfjs from "pdfjs-dist";
import { sha256 } from "../fixtures/app.ts";
import { fileOfPackage, showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

const PAGES = 40;
/** Of a picture on each page. */
const SIDE = 160;

const PACKAGE = ["build/pdf.min.mjs", "build/pdf.worker.min.mjs", "standard_fonts/LiberationSans-Regular.ttf"];

/** A document without compression, whose every page has a line of text and a picture of noise (ISO 32000). */
function longDocument(): Uint8Array {
  const objects: Buffer[] = [];
  const add = (number: number, dictionary: string, stream?: Uint8Array): void => {
    const length = stream ? ` /Length ${stream.length}` : "";
    const body = stream ? [Buffer.from("\nstream\n"), stream, Buffer.from("\nendstream")] : [];
    objects[number - 1] = Buffer.concat([
      Buffer.from(`${number} 0 obj\n<<${dictionary}${length}>>`),
      ...body,
      Buffer.from("\nendobj\n"),
    ]);
  };
  const numbers = Array.from({ length: PAGES }, (_, i) => 4 + 3 * i);
  add(1, "/Type /Catalog /Pages 2 0 R");
  add(2, `/Type /Pages /Count ${PAGES} /Kids [${numbers.map((number) => `${number} 0 R`).join(" ")}]`);
  add(3, "/Type /Font /Subtype /Type1 /BaseFont /Helvetica");
  for (const [i, page] of numbers.entries()) {
    const resources = `/Font <</F 3 0 R>> /XObject <</P ${page + 2} 0 R>>`;
    const box = "/MediaBox [0 0 300 300]";
    add(page, `/Type /Page /Parent 2 0 R ${box} /Contents ${page + 1} 0 R /Resources <<${resources}>>`);
    const content = `BT /F 20 Tf 20 270 Td (This is page ${i + 1}.) Tj ET q 200 0 0 200 50 40 cm /P Do Q`;
    add(page + 1, "", Buffer.from(content));
    const picture = `/Width ${SIDE} /Height ${SIDE} /ColorSpace /DeviceRGB /BitsPerComponent 8`;
    add(page + 2, `/Type /XObject /Subtype /Image ${picture}`, randomBytes(3 * SIDE * SIDE));
  }
  const head = Buffer.from("%PDF-1.4\n");
  let at = head.length;
  const places = objects.map(({ length }) => {
    at += length;
    return `${String(at - length).padStart(10, "0")} 00000 n \n`;
  });
  const count = objects.length + 1;
  const table = `xref\n0 ${count}\n0000000000 65535 f \n${places.join("")}`;
  const trailer = `trailer\n<</Size ${count} /Root 1 0 R>>\nstartxref\n${at}\n%%EOF\n`;
  return Buffer.concat([head, ...objects, Buffer.from(table + trailer)]);
}

test("pdf.js shows the pages of a document that it reads by ranges", async ({ browser, world }) => {
  const files: Record<string, Uint8Array> = { "pdf/report.pdf": longDocument() };
  for (const file of PACKAGE) files[`pdf/${file}`] = await fileOfPackage(`pdfjs-dist/${file}`);
  const shown = await showSame(browser, world, files, async (page) => {
    let ranges = 0;
    page.on("request", (request) => void (request.headers()["range"] && ranges++));
    const pages = await page.evaluate(async (last) => {
      const load = (url: string): Promise<typeof pdfjs> => import(url) as Promise<typeof pdfjs>;
      const library = await load("/ec/pdf/build/pdf.min.mjs");
      library.GlobalWorkerOptions.workerSrc = "/ec/pdf/build/pdf.worker.min.mjs";
      const { promise } = library.getDocument({
        url: "/ec/pdf/report.pdf",
        standardFontDataUrl: "/ec/pdf/standard_fonts/",
        useSystemFonts: false,
        // Ranges of what is shown only.
        disableAutoFetch: true,
        disableStream: true,
      });
      const report = await promise;
      const seen = [];
      for (const number of [last, 1, last / 2]) {
        const sheet = await report.getPage(number);
        const viewport = sheet.getViewport({ scale: 1 });
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [viewport.width, viewport.height];
        await sheet.render({ canvas, viewport }).promise;
        const { items } = await sheet.getTextContent();
        const text = items.map((item) => ("str" in item ? item.str : "")).join("");
        seen.push({ text, picture: canvas.toDataURL() });
      }
      return seen;
    }, PAGES);
    expect(ranges).toBeGreaterThan(3);
    return pages.map(({ text, picture }) => ({ text, picture: sha256(Buffer.from(picture)) }));
  });
  expect(new Set(shown.map(({ picture }) => picture)).size).toBe(3);
  expect(shown.map(({ text }) => text)).toEqual([PAGES, 1, PAGES / 2].map((number) => `This is page ${number}.`));
});
