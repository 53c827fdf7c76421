// SPDX-License-Identifier: MIT
// What the colours of rows mean, for the help.
import { LOW, STATES } from "./states";

/** In this order, and only once where several have the same colour and the same meaning. */
const SHOWN = [2, 1, 3, 21, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 0];

export function Legend() {
  return (
    <>
      <h3>Colours of rows</h3>
      <ul class="colours">
        {SHOWN.map((kind) => (
          <li>
            <svg width="22" height="14" aria-hidden="true">
              <rect x="0" y={LOW.has(kind) ? 5 : 0} width="22" height={LOW.has(kind) ? 4 : 14} fill={STATES[kind][1]} />
            </svg>
            {STATES[kind][0]}
          </li>
        ))}
      </ul>
      <p>
        In curves, the mean of a pixel is blue, what lies between it and the greatest value orange. Orange hatching: lost events. Ticks:
        events of programs, or those of the filter.
      </p>
    </>
  );
}
