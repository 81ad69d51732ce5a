import type { ReactNode } from "react";
import { Agarose } from "./agarose";

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>
        {children}
        <Agarose />
      </body>
    </html>
  );
}
