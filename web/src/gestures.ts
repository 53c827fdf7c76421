// SPDX-License-Identifier: MIT
// Zooming of a picture by the wheel (a touchpad's pinch is a wheel with Ctrl) and by two fingers on a screen.
import { useEffect } from "preact/hooks";
import type { Store } from "./store";
import { move, zoom, type Range } from "./time";

interface Pinch {
  view: Range; // when the second finger came
  gap: number; // pixels between the fingers then
  centre: number; // place between the fingers then, 0 to 1
}

/** Fingers closer than this zoom as if they were this far apart: a ratio of a few pixels would jump. */
const LEAST_GAP = 24;

type Points = ReadonlyMap<number, { x: number; y: number }>;

function between(fingers: Points, box: DOMRect): { gap: number; centre: number } {
  const [a, b] = [...fingers.values()];
  return {
    gap: Math.max(LEAST_GAP, Math.hypot(a.x - b.x, a.y - b.y)),
    centre: ((a.x + b.x) / 2 - box.left) / box.width,
  };
}

function onWheel(store: Store, element: HTMLElement, event: WheelEvent): void {
  const { view } = store.state;
  const sideways = event.shiftKey ? event.deltaY : event.deltaX;
  const box = element.getBoundingClientRect();
  if (event.ctrlKey)
    store.go(zoom(view, Math.exp(event.deltaY * 0.003), (event.clientX - box.left) / box.width, store.whole));
  else if (sideways) store.go(move(view, sideways / 800, store.whole));
  else return;
  event.preventDefault();
}

/** The time between the fingers stays between them. A second finger ends the dragging of the first one. */
function listenToFingers(store: Store, element: HTMLElement, endDrag: () => void, signal: AbortSignal): void {
  const fingers = new Map<number, { x: number; y: number }>();
  let pinch: Pinch | null = null;
  const lift = (event: PointerEvent) => {
    fingers.delete(event.pointerId);
    pinch = null;
  };
  const press = (event: PointerEvent) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (fingers.size < 2) return;
    event.stopImmediatePropagation();
    element.setPointerCapture(event.pointerId);
    endDrag();
    if (fingers.size === 2) pinch = { view: store.state.view, ...between(fingers, element.getBoundingClientRect()) };
    else pinch = null;
  };
  const slide = (event: PointerEvent) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (!pinch) return;
    const now = between(fingers, element.getBoundingClientRect());
    const zoomed = zoom(pinch.view, pinch.gap / now.gap, pinch.centre, store.whole);
    store.go(move(zoomed, pinch.centre - now.centre, store.whole));
  };
  const options = { capture: true, signal };
  element.addEventListener("pointerdown", press, options);
  element.addEventListener("pointermove", slide, options);
  element.addEventListener("pointerup", lift, options);
  element.addEventListener("pointercancel", lift, options);
}

/** `endDrag` must be the same function at every call, or do the same. */
export function useZoomGestures(store: Store, picture: preact.RefObject<HTMLElement>, endDrag: () => void): void {
  useEffect(() => {
    const element = picture.current!;
    const stop = new AbortController();
    element.addEventListener("wheel", (event) => onWheel(store, element, event), { passive: false, signal: stop.signal });
    listenToFingers(store, element, endDrag, stop.signal);
    return () => stop.abort();
  }, []);
}
