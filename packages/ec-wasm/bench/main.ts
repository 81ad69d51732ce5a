/** `node packages/ec-wasm/bench/main.ts`: measures and rewrites the codec's tables in docs/internals/benchmarks.md. */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";

import { benchCodec } from "./index.ts";
import { toMarkdown } from "./markdown.ts";

const PATH = fileURLToPath(new URL("../../../docs/internals/benchmarks.md", import.meta.url));
const [BEGIN, END] = ["<!-- bench: codec -->", "<!-- end: codec -->"];

const report = await benchCodec({ onWork: (work) => console.error(JSON.stringify(work)) });
const text = await readFile(PATH, "utf8");
const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
if (from < 0 || to < from) throw new Error(`${PATH} lacks the marks ${BEGIN} and ${END}`);
const next = `${text.slice(0, from + BEGIN.length)}\n\n${toMarkdown(report)}\n\n${text.slice(to)}`;
await writeFile(PATH, await format(next, { ...(await resolveConfig(PATH)), filepath: PATH }));
