// A canvas as sharp as the screen, drawn again when it is resized, when the theme changes, and when its drawing reads a
// signal that changed: at most once a frame.

import { effect } from "@preact/signals";
import type { CanvasHTMLAttributes, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isDark } from "../shell/preferences.ts";

/** What a drawing is given: sizes are in CSS pixels. */
export interface Surface {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly height: number;
  /** A colour of the style sheet, by its name without the dashes. */
  colour(name: string): string;
}

type Properties = Omit<CanvasHTMLAttributes<HTMLCanvasElement>, "width" | "height"> & {
  /** Of the CSS width, the height it needs; read before each drawing. */
  readonly heightFor: (width: number) => number;
  readonly draw: (surface: Surface) => void;
};

export function Canvas({ heightFor, draw, ...rest }: Properties): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef({ heightFor, draw });
  latest.current = { heightFor, draw };
  const again = useRef<() => void>(() => {});
  useEffect(() => {
    const element = canvas.current!;
    let frame = 0;
    let width = element.parentElement!.clientWidth;
    let stop: (() => void) | undefined;
    const paint = (): void => {
      frame = 0;
      stop?.();
      let first = true;
      stop = effect(() => {
        if (!first) {
          // A signal changed: the next frame draws, however many change until then.
          schedule();
          return;
        }
        first = false;
        isDark.value;
        paintNow(element, width, latest.current.heightFor, latest.current.draw);
      });
    };
    const schedule = (): void => {
      if (frame === 0) frame = requestAnimationFrame(paint);
    };
    again.current = schedule;
    paint();
    const observer = new ResizeObserver(([entry]) => {
      // Asked of the observer, because asking the element would lay the page out in each frame.
      width = entry!.contentRect.width;
      schedule();
    });
    observer.observe(element.parentElement!);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
      stop?.();
    };
  }, []);
  useEffect(() => again.current());
  return <canvas ref={canvas} {...rest} />;
}

const colours = new Map<string, string>();
effect(() => {
  isDark.value;
  colours.clear();
});
function colour(name: string): string {
  let value = colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, value);
  }
  return value;
}

function paintNow(
  element: HTMLCanvasElement,
  width: number,
  heightFor: (width: number) => number,
  draw: (surface: Surface) => void,
): void {
  if (width === 0) return;
  const height = heightFor(width);
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (element.width !== w || element.height !== h) {
    element.width = w;
    element.height = h;
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
  }
  const context = element.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  draw({ context, width, height, colour });
}
