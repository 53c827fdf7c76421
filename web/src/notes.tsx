// SPDX-License-Identifier: MIT
// Notes on times and areas: flags in the strip and the graph, a list, and keys.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { colour } from "./graph";
import { isSaved } from "./saved";
import { NOTES, useStore, type Store } from "./store";
import { clock, duration, placeOf, type Range } from "./time";

const MOST = 2000;
const FLAG = 8;

export const NOTE_HELP: [keys: string, what: string][] = [
  ["B", "set a bookmark, with or without a note, at the cursor or on the selected area"],
  ["' (apostrophe)", "the list of bookmarks and notes"],
  ["comma, full stop", "the previous, the next bookmark"],
];

/** The form for a new note, once it is there; it is wanted before that. */
const form: { begin: (() => void) | null; isWanted: boolean } = { begin: null, isWanted: false };

/** Flags, and bands for areas. @withText: the begin of each text, where there is room. */
export function drawNotes(context: CanvasRenderingContext2D, notes: api.Note[], range: Range, width: number, height: number, withText: boolean) {
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  let free = 0;
  for (const note of notes) {
    if (note.end < range.begin || note.begin > range.end) continue;
    const x = Math.round(placeOf(note.begin, range) * width);
    const to = Math.round(placeOf(note.end, range) * width);
    context.fillStyle = colour(context.canvas, "--note");
    context.globalAlpha = 0.25;
    if (to > x) context.fillRect(x, 0, to - x, height);
    context.globalAlpha = 1;
    context.fillRect(x, 0, 1, height);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x + FLAG, FLAG / 2);
    context.lineTo(x, FLAG);
    context.fill();
    if (!withText || !note.text || x < free) continue;
    const text = note.text.length > 24 ? `${note.text.slice(0, 23)}…` : note.text;
    context.fillStyle = colour(context.canvas, "--ink");
    context.fillText(text, x + FLAG + 2, 0);
    free = x + FLAG + 6 + context.measureText(text).width;
  }
}

/** Show the time of a note. */
function goTo(store: Store, note: api.Note): void {
  const { view } = store.state;
  const size = note.end - note.begin;
  const half = size ? size : (view.end - view.begin) / 2n;
  store.go({ begin: note.begin - half, end: note.end + half });
  store.set({ cursor: note.begin, selection: size ? { begin: note.begin, end: note.end } : store.state.selection });
}

function step(store: Store, forward: boolean): void {
  const { cursor, view } = store.state;
  const from = cursor ?? view.begin + (view.end - view.begin) / 2n;
  const list = forward ? store.notes.filter((note) => note.begin > from) : store.notes.filter((note) => note.begin < from).reverse();
  if (list.length) goTo(store, list[0]);
}

export function noteKeys(store: Store): Record<string, () => void> {
  return {
    b: () => {
      store.set({ report: NOTES });
      form.isWanted = !form.begin;
      form.begin?.();
    },
    "'": () => store.set({ report: store.state.report === NOTES ? "" : NOTES }),
    ",": () => step(store, false),
    ".": () => step(store, true),
  };
}

/** What a new note is about: the area, the cursor, or the middle of the graph. */
function place(store: Store): Range {
  const { selection, cursor, view } = store.state;
  const middle = view.begin + (view.end - view.begin) / 2n;
  const ns = cursor !== null && cursor >= view.begin && cursor <= view.end ? cursor : middle;
  return selection ?? { begin: ns, end: ns };
}

function Form({ store, edited, done, failed }: {
  store: Store;
  edited: api.Note | null;
  done: (notes: api.Notes) => void;
  failed: (message: string) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  useEffect(() => {
    setText(edited?.text ?? "");
    if (edited) input.current?.focus();
  }, [edited]);
  useEffect(() => {
    form.begin = () => input.current?.focus();
    if (form.isWanted) form.begin();
    form.isWanted = false;
    return () => {
      form.begin = null;
    };
  }, []);
  const save = async (event: Event) => {
    event.preventDefault();
    try {
      done(await api.note({ ...(edited ?? { id: null, ...place(store) }), text: text.trim() }));
      setText("");
      input.current?.blur();
    } catch (error) {
      failed((error as Error).message);
    }
  };
  const { begin, end } = edited ?? place(store);
  return (
    <form class="note-form" onSubmit={(event) => void save(event)}>
      <input
        ref={input}
        id="note"
        aria-label="Text of the note"
        placeholder="A bookmark; with a text, a note"
        maxLength={MOST / 4}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button>{edited ? "Change" : "Set"}</button>
      <p class="note">
        {clock(begin)}
        {end > begin && `, ${duration(Number(end - begin))}`}
      </p>
    </form>
  );
}

export function NotesPane({ store }: { store: Store }) {
  useStore(store);
  const [error, setError] = useState("");
  const [edited, setEdited] = useState<api.Note | null>(null);
  const [kept, setKept] = useState("");
  const take = (found: api.Notes) => {
    setError("");
    setEdited(null);
    setKept(`${found.directory}/${found.file}`);
    store.setNotes(found.notes);
  };
  const fail = (reason: unknown) => setError((reason as Error).message);
  useEffect(() => {
    api.notes().then(take, fail);
  }, []);
  return (
    <div class="report notes">
      <h2>Bookmarks and notes</h2>
      {!isSaved && <Form store={store} edited={edited} done={take} failed={setError} />}
      {error && (
        <p class="note error" role="alert">
          {error}
        </p>
      )}
      <table>
        <tbody>
          {store.notes.map((note) => (
            <tr class="goes" tabIndex={0} onClick={() => goTo(store, note)} onKeyDown={(event) => event.key === "Enter" && goTo(store, note)}>
              <td>{clock(note.begin)}</td>
              <td class="number">{note.end > note.begin ? duration(Number(note.end - note.begin)) : ""}</td>
              <td class="text">{note.text}</td>
              <td>
                {!isSaved && (
                  <>
                    <button
                      aria-label="Change"
                      onClick={(event) => {
                        event.stopPropagation();
                        setEdited(note);
                      }}
                    >
                      ✎
                    </button>
                    <button
                      aria-label="Remove"
                      onClick={(event) => {
                        event.stopPropagation();
                        api.unnote(note.id).then(take, fail);
                      }}
                    >
                      ✕
                    </button>
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {!store.notes.length && !error && <p class="note">None yet. The key B sets one.</p>}
      {kept && !isSaved && <p class="note">They are kept in {kept}</p>}
    </div>
  );
}

/** Bring the notes at the start; the pane tells of errors. */
export function useNotes(store: Store): void {
  useEffect(() => {
    api.notes().then(
      (found) => store.setNotes(found.notes),
      () => undefined,
    );
  }, [store]);
}
