/** The drop-in file beside a worker that an app has already, of either kind, with and without WebAssembly. */
import { expect } from "@playwright/test";
import { read, registerWorker, sha256 } from "../fixtures/app.ts";
import type { BrowserCase } from "./case.ts";

const REGION_DOWN = "frankfurt";

const IMPORTS = {
  classic: `importScripts("/agarose-sw.js");`,
  // A module worker cannot import late: where there may be no WebAssembly it brings the decoder itself.
  module: `import "/agarose-codec.js"; import "/agarose-sw.js";`,
} as const;

function workerOf(type: keyof typeof IMPORTS, config: string): string {
  return `${IMPORTS[type]}
agarose(${config});
addEventListener("fetch", (event) => {
  if (new URL(event.request.url).pathname === "/own") event.respondWith(new Response("from the app's own listener"));
});`;
}

export const importedCases: readonly BrowserCase[] = (["classic", "module"] as const).flatMap((type) =>
  [true, false].map((wasm) => ({
    name: `a ${type} worker that imports the file has both listeners, ${wasm ? "with" : "without"} WebAssembly`,
    isFurther: wasm === (type === "classic"),
    async run({ folder, openAppServedWith, putRandom, world }) {
      const key = `${folder}imported/${type}/${wasm}`;
      const content = await putRandom(key, 5_000_000);
      await world.region(REGION_DOWN).down();
      const config = await (await fetch(`${world.app}agarose.json`)).text();
      const policy = `script-src 'self'${wasm ? " 'wasm-unsafe-eval'" : ""}`;
      const files = { "/worker.js": { contentType: "text/javascript", body: workerOf(type, config) } };
      const { page } = await openAppServedWith({ "content-security-policy": policy }, files);
      await registerWorker(page, "/worker.js", type);
      const answer = await read(page, key);
      expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
      expect(answer.headers["server-timing"], "something was lost").toContain("decode;");
      const own = await page.evaluate(async (path) => (await fetch(path)).text(), "/own");
      expect(own).toBe("from the app's own listener");
    },
  })),
);
