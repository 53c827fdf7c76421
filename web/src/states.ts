// SPDX-License-Identifier: MIT
// States of rows: their texts and colours, indexed by the numbers of src/analysis/history/history.h.

export const KIND = { none: 0, runs: 2, active: 14, span: 15, request: 18, value: 19, events: 20 };

/**
 * The colours are those of Okabe and Ito, and two more: colour-blind people can distinguish those of a thread, on white and on
 * black. test_view_look.py measures that.
 */
export const STATES: [text: string, colour: string][] = [
  ["several short states", "#8a97a8"],
  ["idle", "#8a97a8"],
  ["runs", "#0072b2"],
  ["user space", "#009e73"],
  ["system call", "#0072b2"],
  ["interrupted", "#d55e00"],
  ["interrupted by a softirq", "#e69f00"],
  ["waits for a CPU", "#f0e442"],
  ["blocked", "#8a97a8"],
  ["waits for a disk", "#cc79a7"],
  ["waits for a lock", "#e00040"],
  ["waits for the network", "#8040ff"],
  ["waits for a time", "#8a97a8"],
  ["stopped", "#55606d"],
  ["active", "#d55e00"],
  ["span", "#56b4e9"],
  ["read request", "#009e73"],
  ["write request", "#d55e00"],
  ["request", "#8a97a8"],
  ["value", "#56b4e9"],
  ["events", "#56b4e9"],
  ["running", "#009e73"],
];

/** States in which nothing happens are thin lines. So are waits without a known cause. */
export const LOW = new Set([1, 8, 12, 13]);
/** Text on these colours is black, else white. */
export const BRIGHT = new Set([6, 7, 15, 9]);

const BLACK_PART = 0.55;

/** Bytes of a pixel, as a number of the machine's byte order; @faint: half of it shows the paper. */
function pixel(colour: string, faint: boolean): number {
  const bytes = new Uint8Array(4);
  for (let i = 0; i < 3; i++) bytes[i] = parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  bytes[3] = faint ? 0x70 : 0xff;
  return new Uint32Array(bytes.buffer)[0];
}

/** A bright state has darker edges, which are visible on white. */
export const EDGES = Uint32Array.from(STATES, ([, colour], kind) => {
  const parts = [1, 3, 5].map((i) => Math.round(parseInt(colour.slice(i, i + 2), 16) * (1 - BLACK_PART)));
  return BRIGHT.has(kind) ? pixel(`#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`, false) : 0;
});

/** A little of a state: it is paler. */
export const PALE = Uint32Array.from(STATES, ([, colour], kind) => pixel(colour, kind !== 0));

export const PIXELS = Uint32Array.from(STATES, ([, colour], kind) => pixel(colour, LOW.has(kind) && kind !== 13));
