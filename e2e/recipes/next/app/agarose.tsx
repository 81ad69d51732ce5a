"use client";
import { useEffect } from "react";
import { register } from "@agarose/sw";

export function Agarose() {
  useEffect(() => void register(), []);
  return null;
}
