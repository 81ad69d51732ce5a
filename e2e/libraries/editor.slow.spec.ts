/** `monaco-editor`, as it is, shows a script in colours. Its workers, loaded from objects too, find a mistake in it. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { unpacked } from "./unpacked.ts";
import { showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

const SCRIPT = 'const answer = "forty-two"; // of six regions\nanswer =;';

/** Translations, and the workers of other languages. */
const UNUSED = /\/vs\/(?:nls\/|assets\/(?:css|html|json))/;

/** The little of the library and of its loader that the test uses: they are not installed. */
declare const require: ((modules: string[], loaded: () => void, failed: (error: unknown) => void) => void) & {
  config(options: object): void;
};
declare const monaco: {
  editor: {
    create(element: HTMLElement, options: object): void;
    getModelMarkers(filter: object): { message: string; startLineNumber: number }[];
  };
};

test("monaco-editor colours a script and finds a mistake in it", async ({ browser, world }) => {
  const { folder, missing } = await unpacked("monaco-editor", "0.57.0");
  test.skip(missing !== undefined, missing);
  const files: Record<string, Uint8Array> = {};
  for (const entry of await readdir(join(folder!, "min"), { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !UNUSED.test(path))
      files[`editor${path.slice(join(folder!, "min").length)}`] = await readFile(path);
  }
  const shown = await showSame(browser, world, files, async (page) => {
    await page.addScriptTag({ url: "/ec/editor/vs/loader.js" });
    return page.evaluate(async (value) => {
      require.config({ paths: { vs: "/ec/editor/vs" } });
      await new Promise<void>((resolve, reject) => require(["vs/editor/editor.main"], resolve, reject));
      const element = document.createElement("div");
      element.style.cssText = "width: 600px; height: 200px";
      document.body.append(element);
      monaco.editor.create(element, { value, language: "javascript" });
      const untilSome = async <T>(list: () => T[]): Promise<T[]> => {
        while (list().length === 0) await new Promise(requestAnimationFrame);
        return list();
      };
      const mistakes = await untilSome(() => monaco.editor.getModelMarkers({}));
      const words = await untilSome(() => {
        const spans = [...element.querySelectorAll<HTMLElement>(".view-line span span")];
        // Until its language is loaded, text is of one class.
        return new Set(spans.map(({ className }) => className)).size > 1 ? spans : [];
      });
      return {
        mistakes: mistakes.map(({ startLineNumber, message }) => `${startLineNumber}: ${message}`),
        words: words.map((word) => [word.textContent, getComputedStyle(word).color]),
        font: getComputedStyle(element.querySelector(".view-lines")!).fontFamily,
      };
    }, SCRIPT);
  });
  expect(shown.mistakes).toEqual(["2: Expression expected."]);
  expect(new Set(shown.words.map(([, colour]) => colour)).size, "a keyword, a string, a comment and the rest").toBe(4);
});
