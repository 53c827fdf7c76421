// SPDX-License-Identifier: MIT
// A recording that goes on: the page asks for what is new, and shows whether it is at the present.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { useStore, type Store } from "./store";
import type { Range } from "./time";

const LOOK_MS = 1000;
/** Answers that the page still waits for put the next look off, for so many times of AGAIN_MS at most. */
const AGAIN_MS = 200;
const AGAIN_MAX = 50;
const FAILURES_MAX = 5;

/** Follow the recording, if there is one, until it ends. */
export function useRecording(store: Store): void {
  useEffect(() => {
    if (!store.info.recording?.running) return;
    let timer = 0;
    let again = 0;
    let failures = 0;
    const look = async () => {
      if ((api.pending() && again++ < AGAIN_MAX) || document.hidden) return wait(AGAIN_MS);
      again = 0;
      try {
        const info = await api.info();
        failures = 0;
        if (info.recording?.generation !== store.generation || !info.recording.running) store.renew(info);
        if (!info.recording?.running) return;
      } catch (error) {
        if (++failures < FAILURES_MAX) return wait(LOOK_MS);
        const text = `the viewer does not answer: ${(error as Error).message}`;
        return store.renew({ ...store.info, recording: { ...store.info.recording!, running: false, error: text } });
      }
      wait(LOOK_MS);
    };
    const wait = (ms: number): void => {
      timer = window.setTimeout(() => void look(), ms);
    };
    wait(LOOK_MS);
    return () => window.clearTimeout(timer);
  }, [store]);
}

/** The state of the recording, and the way back to the present. */
export function Recording({ store }: { store: Store }) {
  const { follow } = useStore(store);
  const recording = store.info.recording;
  if (!recording) return null;
  if (recording.error)
    return (
      <span id="live" class="error" role="alert">
        The recording is not followed any more: {recording.error}
      </span>
    );
  if (!recording.running)
    return (
      <span id="live" role="status">
        The recording has ended
      </span>
    );
  return (
    <button id="live" class={follow ? "live" : ""} aria-pressed={follow} title="Show the present (L)" onClick={() => store.follow()}>
      {follow ? "● Live" : "Go to the present"}
    </button>
  );
}

/** @range, which changes all the time while the page follows a recording: then a new one only now and then. */
export function useSteady(range: Range, follow: boolean, ms: number): Range {
  const [steady, setSteady] = useState(range);
  const latest = useRef(range);
  latest.current = range;
  useEffect(() => {
    if (!follow) return;
    setSteady(latest.current);
    const timer = window.setInterval(() => setSteady(latest.current), ms);
    return () => window.clearInterval(timer);
  }, [follow, ms]);
  return follow ? steady : range;
}
