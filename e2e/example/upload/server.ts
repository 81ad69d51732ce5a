import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { openDeployment } from "@agarose/storage";

const store = await openDeployment(process.env["AGAROSE_CONFIG"] ?? "agarose.config.json");

const uploads = store.uploads({
  secret: process.env["UPLOADS_SECRET"]!,
  prefix: "uploads/",
  bytesMax: 5_000_000_000,
  authorize: (request) => request.headers.get("cookie")?.includes("session=") ?? false,
});

/** For `createServer`, at `/v1/uploads` and the paths below it. */
export async function answerUpload(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
  const { method = "GET", headers, url = "/" } = asked;
  const request = {
    method,
    headers: Object.entries(headers).map(([name, value]) => [name, String(value)]),
    ...(method === "POST" && { body: Readable.toWeb(asked), duplex: "half" }),
  };
  const response = await uploads(new Request(new URL(url, "https://app.example"), request as RequestInit));
  answer.writeHead(response.status, Object.fromEntries(response.headers));
  answer.end(await response.text());
}
