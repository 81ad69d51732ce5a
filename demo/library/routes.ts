/**
 * Paths of the page that reads text with `transformers.js`. `POST /library` fetches the library and the model, and
 * stores the model in the world. `/library/FILE` then gives the files of the library.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { TEXT } from "../samples/index.ts";
import { textReader, type TextReader } from "./packages.ts";

/** What an object of the world is made of. */
type Put = (key: string, content: Uint8Array) => Promise<void>;

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript",
  mjs: "text/javascript",
  wasm: "application/wasm",
};

/** Answers what is below `/library`, where it is mounted. */
export function libraryRoutes(control: string): (request: IncomingMessage, response: ServerResponse) => void {
  const put: Put = async (key, content) => {
    const answer = await fetch(`${control}/objects/${key}`, { method: "PUT", body: content as BodyInit });
    if (!answer.ok) throw new Error(`the world answers ${answer.status} to the put of ${key}: ${await answer.text()}`);
  };
  let ready: Promise<TextReader> | undefined;
  return (request, response) => {
    const answer =
      request.method === "POST"
        ? (ready ??= storedReader(put)).then(() => response.writeHead(204).end())
        : file(ready, request, response);
    answer.catch((error: unknown) => {
      // The next visit tries again.
      ready = undefined;
      response.writeHead(503, { "content-type": "text/plain" }).end((error as Error).message);
    });
  };
}

async function storedReader(put: Put): Promise<TextReader> {
  const reader = await textReader();
  if ("missing" in reader) throw new Error(reader.missing);
  await put(TEXT.config, Buffer.from(JSON.stringify({ model_type: "custom" })));
  await put(TEXT.characters, await readFile(reader.characters));
  await put(TEXT.key, await readFile(reader.model));
  return reader;
}

async function file(
  ready: Promise<TextReader> | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const name = basename(new URL(request.url!, "http://page.invalid").pathname);
  const type = TYPES[name.split(".").at(-1)!];
  const reader = await ready;
  const path = reader && join(name.startsWith("ort") ? reader.runtime : reader.scripts, name);
  const bytes = path && type && (await readFile(path).catch(() => undefined));
  if (!bytes) return void response.writeHead(404).end();
  response.writeHead(200, { "content-type": type, "cache-control": "max-age=3600" }).end(bytes);
}
