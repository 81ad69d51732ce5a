import { register } from "virtual:agarose";

const agarose = await register();
const bytes = await (await agarose.fetch("vite/cat.bin")).arrayBuffer();
const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const { scriptURL } = navigator.serviceWorker.controller;
document.title = `${[...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("")} by ${new URL(scriptURL).pathname}`;
