// Where files may be dropped: what an element needs beside its contents, as attributes to spread. Dropping is the mouse's
// way alone: the element holds a button that chooses the same files.

import { useSignal } from "@preact/signals";
import type { HTMLAttributes } from "preact";

/** Class "drop" (and "over" while something is held above it), and the handlers of a drop. */
export function useDropping<Target extends EventTarget>(
  onFiles: (files: readonly File[]) => void,
): Pick<HTMLAttributes<Target>, "class" | "onDragOver" | "onDragLeave" | "onDrop"> {
  const over = useSignal(false);
  return {
    class: over.value ? "drop over" : "drop",
    onDragOver: (event) => {
      event.preventDefault();
      over.value = true;
    },
    onDragLeave: () => {
      over.value = false;
    },
    onDrop: (event) => {
      event.preventDefault();
      over.value = false;
      onFiles([...(event.dataTransfer?.files ?? [])]);
    },
  };
}
