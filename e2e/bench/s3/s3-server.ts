/**
 * Runs an S3 server in its own process, so that its work does not count in a measurement. Prints its URL and runs
 * until its stdin ends; then it prints how many requests the embedded server has had. `node s3-server.ts
 * embedded|versitygw FOLDER BUCKET…`, credentials from the environment as for AWS. BENCH_DELAY_MS holds each request of
 * the embedded server back for so long.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startS3Endpoint, startVersitygw } from "@agarose/dev-world/s3-endpoint";

const [kind, dir = "", ...buckets] = process.argv.slice(2);
const delayMs = Number(process.env["BENCH_DELAY_MS"] ?? 0);
const keys = {
  accessKeyId: process.env["AWS_ACCESS_KEY_ID"] ?? "",
  secretAccessKey: process.env["AWS_SECRET_ACCESS_KEY"] ?? "",
};
let requests = 0;
const server =
  kind === "versitygw"
    ? await startVersitygw({ ...keys, dir, buckets })
    : await startS3Endpoint({
        ...keys,
        dir,
        buckets,
        async intercept() {
          requests++;
          if (delayMs > 0) await sleep(delayMs);
          return false;
        },
      });
console.log(server.url);
process.stdin.resume().once("end", () => {
  console.log(requests);
  void server.close();
});
