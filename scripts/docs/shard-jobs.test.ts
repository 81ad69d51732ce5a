/**
 * The jobs of the guide that share a walk: their fields are those of the engines, and their commands meet each shard
 * once.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";

const GUIDE = readFileSync(new URL("../../docs/guides/heal.md", import.meta.url), "utf8");
const SHARES = ["1/8", "2/8", "3/8", "4/8", "5/8", "6/8", "7/8", "8/8"];

/** A type by its name, a text that must be there, a list of one shape, or an object with these fields and no others. */
type Shape =
  "string" | "number" | "boolean" | { readonly is: string } | readonly [Shape] | { readonly [name: string]: Shape };

/** Fields of batch/v1 (https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/). */
const JOB: Shape = {
  apiVersion: { is: "batch/v1" },
  kind: { is: "Job" },
  metadata: { name: "string" },
  spec: {
    completionMode: { is: "Indexed" },
    completions: "number",
    parallelism: "number",
    backoffLimitPerIndex: "number",
    template: {
      spec: {
        restartPolicy: { is: "Never" },
        containers: [
          {
            name: "string",
            image: "string",
            command: ["string"],
            envFrom: [{ secretRef: { name: "string" } }],
            volumeMounts: [{ name: "string", mountPath: "string", readOnly: "boolean" }],
          },
        ],
        volumes: [{ name: "string", configMap: { name: "string" } }],
      },
    },
  },
};

/** Where a value is not as its shape says. */
function offences(value: unknown, shape: Shape, path = "job"): string[] {
  if (typeof shape === "string") return typeof value === shape ? [] : [`${path} is no ${shape}`];
  if (Array.isArray(shape)) {
    const items = Array.isArray(value) && value.length > 0 ? value : undefined;
    return items?.flatMap((item, at) => offences(item, shape[0], `${path}[${at}]`)) ?? [`${path} is no list`];
  }
  if ("is" in shape) return value === shape.is ? [] : [`${path} is not ${String(shape.is)}`];
  const fields = Object(value) as Record<string, unknown>;
  const unknown = Object.keys(fields).filter((name) => !(name in shape));
  return [
    ...unknown.map((name) => `${path}.${name} is no field`),
    ...Object.entries(shape).flatMap(([name, own]) => offences(fields[name], own as Shape, `${path}.${name}`)),
  ];
}

const blocks = (language: string): string[] =>
  [...GUIDE.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, name, text]) => (name === language ? text! : []));

let bin: string;
beforeAll(() => {
  bin = mkdtempSync(join(tmpdir(), "agarose-shards-"));
  writeFileSync(join(bin, "npx"), '#!/bin/sh\necho "$@"\n');
  chmodSync(join(bin, "npx"), 0o755);
});
afterAll(() => rmSync(bin, { recursive: true }));

/** The shard that a command takes, with a variable of the engine. */
function shareOf([file, ...args]: readonly string[], variable: string, index: number): string {
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env["PATH"]}`, [variable]: String(index) };
  const line = execFileSync(file!, args, { env, encoding: "utf8" }).trim();
  return /^agarose --config \S+ scrub --shard (\S+)$/.exec(line)?.[1] ?? line;
}

test("the Job of Kubernetes has fields of batch/v1 only, and its pods meet each shard once", () => {
  const job = parse(blocks("yaml").find((text) => text.includes("batch/v1"))!);
  expect(offences(job, JOB)).toEqual([]);
  expect(offences({ ...job, spec: { ...job.spec, completions: "8", paralellism: 8 } }, JOB)).toEqual([
    "job.spec.paralellism is no field",
    "job.spec.completions is no number",
  ]);
  const { completions, template } = job.spec;
  const { containers, volumes } = template.spec;
  expect(containers[0].volumeMounts[0].name).toBe(volumes[0].name);
  const shares = Array.from({ length: completions }, (_, i) =>
    shareOf(containers[0].command, "JOB_COMPLETION_INDEX", i),
  );
  expect(shares).toEqual(SHARES);
});

test("the line for GNU parallel meets each shard once", () => {
  const [, count, command] = /^seq (\d+) \| parallel --retries 3 (.*)$/m.exec(GUIDE)!;
  const shares = Array.from({ length: Number(count) }, (_, i) =>
    shareOf(["sh", "-c", command!.replace("{}", String(i + 1))], "UNUSED", i),
  );
  expect(shares).toEqual(SHARES);
});
