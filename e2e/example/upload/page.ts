import { putObject } from "@agarose/sw/upload";

/** Stores a file that the user has chosen, and shows how far it is. */
export async function store(file: File, bar: HTMLProgressElement, signal: AbortSignal): Promise<string> {
  const { key } = await putObject(`uploads/${file.name}`, file, {
    signal,
    memory: localStorage,
    onProgress({ step, bytes, total }) {
      if (step === "send") bar.value = bytes / total;
    },
  });
  return `/ec/${key}`;
}
