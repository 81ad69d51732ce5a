import { putObject } from "@agarose/sw/upload";

const input = document.querySelector<HTMLInputElement>("input[type=file]")!;
const bar = document.querySelector("progress")!;

input.addEventListener("change", async () => {
  const [file] = input.files!;
  if (!file) return;
  const stored = await putObject(`uploads/${file.name}`, file, {
    memory: localStorage,
    onProgress({ step, bytes, total }) {
      if (step === "send") bar.value = bytes / total;
    },
  });
  console.log(`/ec/${stored.key} has ${stored.bytes} bytes`);
});
