import { expect, test } from "vitest";
import { MS_PER_BYTE_MAX, msPerByteOf, observeTransfers, type TransferMoments } from "./transfer-rate.ts";

const sample = (bytes: number, ms: number): { bytes: number; ms: number; weight: number } => ({ bytes, ms, weight: 1 });

test("the rate is the slope through samples of different sizes, whatever the first byte takes", () => {
  // 40 ms to the first byte, then 10 MB/s.
  const moments = observeTransfers(
    undefined,
    [0, 0, 100_000, 400_000, 1_000_000].map((bytes) => sample(bytes, 40 + bytes / 10_000)),
  );
  expect(msPerByteOf(moments)).toBeCloseTo(1 / 10_000, 9);
});

test("samples of about one size say nothing about the rate", () => {
  expect(
    msPerByteOf(
      observeTransfers(
        undefined,
        [1, 2, 3, 4].map((i) => sample(50_000 + i * 10, 40 + 30 * i)),
      ),
    ),
  ).toBeUndefined();
  expect(msPerByteOf(observeTransfers(undefined, [sample(0, 40), sample(1e6, 140)]))).toBeUndefined();
});

test("the slope is never negative, nor beyond what any bucket takes", () => {
  expect(
    msPerByteOf(
      observeTransfers(
        undefined,
        [0, 0, 1e6, 1e6].map((bytes) => sample(bytes, bytes ? 1 : 500)),
      ),
    ),
  ).toBe(0);
  expect(
    msPerByteOf(
      observeTransfers(
        undefined,
        [0, 0, 1e5, 1e5].map((bytes) => sample(bytes, bytes ? 9e4 : 1)),
      ),
    ),
  ).toBe(MS_PER_BYTE_MAX);
});

test("a rate that changes is followed within ten periods", () => {
  let moments: TransferMoments | undefined;
  const period = (bytesPerMs: number): void => {
    moments = observeTransfers(
      moments,
      [0, 0, 0, 1e6].map((bytes) => sample(bytes, 40 + bytes / bytesPerMs)),
    );
  };
  for (let i = 0; i < 20; i++) period(10_000);
  for (let i = 0; i < 10; i++) period(1_000);
  expect(msPerByteOf(moments!)).toBeGreaterThan(0.9 / 1_000);
});
