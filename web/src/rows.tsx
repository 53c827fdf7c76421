// SPDX-License-Identifier: MIT
// The rows under the graph: a tree of which only the visible part exists, and rows that stay at the top.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { askArrows, middlesOf } from "./arrows";
import { Block, type AllPictures } from "./block";
import { FieldForm } from "./fields";
import { askLosses, askMarks } from "./marks";
import { attachPath, type ThreadPath } from "./path";
import { Pictures } from "./pictures";
import { chosen, ROWS_ID, togglePin } from "./row-keys";
import { useTip, type Spot } from "./tip";
import { useLater, useStore, type Store } from "./store";
import type { Range } from "./time";
import { build, byKey, fieldsOf, heightOf, isOpen, lines, ROW, type Line, type Sort, type Track } from "./tree";

const POLL_MS = 500;

interface Found {
  tracks: Track[];
  keys: Map<string, Track>;
  ids: Map<number, Track>;
  omitted: number;
}

const EMPTY: Found = { tracks: [], keys: new Map(), ids: new Map(), omitted: 0 };

function understand(tree: api.Tree): Found {
  const tracks = build(tree.rows);
  const keys = byKey(tracks);
  const ids = new Map<number, Track>();
  for (const track of keys.values()) if (track.id !== null) ids.set(track.id, track);
  return { tracks, keys, ids, omitted: tree.omitted };
}

/** The tree; as far as the history goes, until that is complete. */
function useTree(store: Store, setError: (text: string) => void): [Found, api.Ready | null] {
  const [found, setFound] = useState<Found>(EMPTY);
  const [ready, setReady] = useState<api.Ready | null>(null);
  const [round, setRound] = useState(0);
  useLater(
    async (signal) => {
      try {
        const tree = await api.tree(signal);
        setReady(tree);
        if (tree.ready || tree.rows.length) setFound(understand(tree));
        if (!tree.ready) window.setTimeout(() => !signal.aborted && setRound((n) => n + 1), POLL_MS);
      } catch (reason) {
        if (!signal.aborted) setError((reason as Error).message);
      }
    },
    [round, store.generation],
    0,
  );
  return [found, ready];
}

/** How long rows were active in the view; the old times stay until the new ones are there. */
function useActivity(store: Store, tracks: Track[], setError: (text: string) => void): ReadonlyMap<number, number> {
  const { view } = useStore(store);
  const [active, setActive] = useState<ReadonlyMap<number, number>>(new Map());
  useLater(
    async (signal) => {
      if (!tracks.length) return;
      try {
        setActive(await api.activity(view, signal));
      } catch (reason) {
        if (!signal.aborted) setError((reason as Error).message);
      }
    },
    [view.begin, view.end, tracks],
    150,
  );
  return active;
}

export function RowsBar({ store }: { store: Store }) {
  const { rows } = useStore(store);
  return (
    <div class="rows-bar" role="group" aria-label="Which rows">
      <input
        id="row-filter"
        type="text"
        aria-label="Filter rows by their names"
        placeholder="Rows (R), such as ngin*"
        maxLength={200}
        value={rows.filter}
        onInput={(event) => store.setRows({ filter: event.currentTarget.value })}
      />
      <label>
        <select
          id="row-sort"
          aria-label="Sort the rows"
          value={rows.sort}
          onChange={(event) => store.setRows({ sort: event.currentTarget.value as Sort })}
        >
          <option value="cpu">sort by CPU time here</option>
          <option value="name">sort by name</option>
          <option value="number">sort by number</option>
        </select>
      </label>
      <label>
        <input
          id="row-active"
          type="checkbox"
          checked={rows.active}
          onChange={(event) => store.setRows({ active: event.currentTarget.checked })}
        />{" "}
        with states here
      </label>
      <label title="Low rows (-)">
        <input
          id="row-low"
          type="checkbox"
          checked={rows.low}
          onChange={(event) => store.setRows({ low: event.currentTarget.checked })}
        />{" "}
        low rows
      </label>
      <FieldForm store={store} />
    </div>
  );
}

function fold(store: Store, track: Track, open: boolean): void {
  const { toggled } = store.state.rows;
  const rest = toggled.filter((key) => key !== track.key);
  store.setRows({ toggled: open === !track.closed ? rest : [...rest, track.key] });
}

function foldAll(store: Store, keys: Map<string, Track>, open: boolean): void {
  const all = [...keys.values()].filter((track) => track.children.length && track.closed === open);
  store.setRows({ toggled: all.map((track) => track.key) });
}

/** Up, down, left and right, as in any tree. */
function treeKeys(store: Store, list: Line[], page: number): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { selected, toggled, fields } = store.state.rows;
    const at = list.findIndex((line) => line.track.key === selected);
    const line = list[at];
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const choose = (i: number) => {
      const next = list[Math.max(0, Math.min(i, list.length - 1))];
      if (next) store.setRows({ selected: next.track.key });
    };
    if (event.key in steps) choose(at < 0 ? 0 : at + steps[event.key]);
    else if (event.key === "Home") choose(0);
    else if (event.key === "End") choose(list.length - 1);
    else if (event.key === "Delete" && line?.track.kind === "field")
      store.setRows({ fields: fields.filter((field) => field !== line.track.label) });
    else if (event.key === "ArrowRight" && line?.open === false) fold(store, line.track, true);
    else if (event.key === "ArrowRight" && line?.open) choose(at + 1);
    else if (event.key === "ArrowLeft" && line?.open && isOpen(line.track, new Set(toggled))) fold(store, line.track, false);
    else if (event.key === "ArrowLeft" && line) {
      let above = at;
      while (above > 0 && list[above].depth >= line.depth) above--;
      if (list[above].depth < line.depth) choose(above);
    } else if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    event.preventDefault();
    event.stopPropagation();
  };
}

/** The height and the place of what scrolls. */
function useScroll(): [preact.RefObject<HTMLDivElement>, number, number, (top: number) => void] {
  const ref = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(200);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setHeight(ref.current!.clientHeight));
    observer.observe(ref.current!);
    return () => observer.disconnect();
  }, []);
  return [ref, height, top, setTop];
}

function usePictures(store: Store, changed: () => void): AllPictures {
  return useMemo(
    () => ({
      states: new Pictures<number>(api.timeline, changed),
      curves: new Pictures<number>(api.curves, changed),
      queues: new Pictures<number>(api.queues, changed),
      fields: new Pictures<string>(
        async (range, count, [id]) => {
          const { runs, ...found } = await api.field(range, count, id, store.state.filter);
          return { ...found, rows: [{ id, runs }] };
        },
        changed,
        1,
      ),
      marks: new Pictures<string>(askMarks, changed, 1),
      losses: new Pictures<string>(askLosses, changed, 1),
      arrows: new Pictures<string>(askArrows, changed, 1),
      path: null as ThreadPath | null,
    }),
    [],
  );
}

/** The pictures of rows in sight. */
function ask(pictures: AllPictures, view: Range, width: number, list: Line[], filter: string): void {
  const states: number[] = [];
  const curves: number[] = [];
  const queues: number[] = [];
  const fields: string[] = [];
  for (const { track } of list) {
    if (typeof track.curve?.source === "string") fields.push(track.curve.source);
    else if (track.curve?.queues) queues.push(track.curve.source);
    else if (track.curve) curves.push(track.curve.source);
    else if (track.id !== null) states.push(track.id);
  }
  pictures.states.want(view, width, states);
  pictures.curves.want(view, width, curves);
  pictures.queues.want(view, width, queues);
  pictures.fields.want(view, width, fields);
  pictures.losses.want(view, width, ["all"]);
  pictures.marks.want(view, width, [filter]);
}

export function RowsPane({ store }: { store: Store }) {
  const { rows, view, filter, cursor } = useStore(store);
  const [error, setError] = useState("");
  const [pointed, setSpot] = useState<Spot | null>(null);
  const [, draw] = useState(0);
  const [scroller, height, top, setTop] = useScroll();
  const [tree, ready] = useTree(store, setError);
  const active = useActivity(store, tree.tracks, setError);
  const found = useMemo((): Found => {
    const fields = fieldsOf(rows.fields);
    attachPath(tree.keys, store.path);
    return { ...tree, tracks: [...tree.tracks, ...fields], keys: byKey(fields, new Map(tree.keys)) };
  }, [tree, rows.fields, store.path]);
  const pictures = usePictures(store, () => draw((n) => n + 1));
  pictures.path = store.path;
  const last = useRef(found);
  useLayoutEffect(() => {
    const before = last.current.ids;
    last.current = found;
    const known = (id: number) => before.get(id)?.label === found.ids.get(id)?.label;
    pictures.states.renew(known);
    pictures.curves.renew(known);
    pictures.queues.renew(known);
  }, [tree]);
  useEffect(() => pictures.fields.renew(() => false), [filter, store.generation]);
  useEffect(() => {
    pictures.marks.renew(() => true);
    pictures.losses.renew(() => true);
    pictures.arrows.renew(() => false);
  }, [tree, store.generation, store.progress.progress === 1]); // damage is known once all is counted
  const list = useMemo(
    () => lines(found.tracks, { ...rows, toggled: new Set(rows.toggled) }, active),
    [found, rows.sort, rows.filter, rows.active, rows.low, rows.toggled, active],
  );
  let high = 0;
  const pinned = rows.pinned.flatMap((key): Line[] => {
    const track = found.keys.get(key);
    if (!track) return [];
    const height = heightOf(track, rows.low);
    high += height;
    return [{ track, y: high - height, height, depth: 0, open: null, position: 1, brothers: 1 }];
  });
  const end = list.at(-1);
  const total = end ? end.y + end.height : 0;
  const from = Math.max(0, Math.min(top, total - height));
  const visible = list.filter((line) => line.y < from + height && line.y + line.height > from);
  const trouble = pictures.states.error || pictures.curves.error || pictures.queues.error || pictures.fields.error;
  // Without a pointer: the selected row at the cursor.
  const chosenSpot = useMemo((): Spot | null => {
    const track = found.keys.get(rows.selected ?? "");
    return track && cursor !== null ? { track, ns: cursor, text: "" } : null;
  }, [found, rows.selected, cursor]);
  const tip = useTip(store, pointed ?? chosenSpot, found.ids);
  const until = pictures.marks.get(filter)?.extra;
  const selected = list.findIndex((line) => line.track.key === rows.selected);
  const place = selected < 0 ? -1 : list[selected].y;

  useLayoutEffect(() => {
    const track = found.keys.get(rows.selected ?? "");
    // The changes of a CPU's use are those of the CPU.
    chosen.id = track?.id ?? (track?.kind === "use" ? Number(track.curve!.source) : null);
    chosen.foldAll = (open) => foldAll(store, found.keys, open);
    chosen.find = (kind, number) => {
      for (const track of found.ids.values()) if (track.kind === kind && track.number === number) return track.key;
      return null;
    };
  }, [found, rows.selected]);
  // What waits for rows can find them now.
  useEffect(() => store.tell(), [found]);
  // The selected row stays in sight, and where it was when the rows get another order.
  const before = useRef({ key: rows.selected, y: 0 });
  useLayoutEffect(() => {
    const element = scroller.current!;
    if (selected >= 0) {
      const tall = list[selected].height;
      const wasSeen = before.current.y >= 0 && before.current.y <= height - tall;
      if (before.current.key === rows.selected && wasSeen) element.scrollTop = place - before.current.y;
      else if (before.current.key !== rows.selected && place < element.scrollTop) element.scrollTop = place;
      else if (before.current.key !== rows.selected && place + tall > element.scrollTop + height)
        element.scrollTop = place + tall - height;
    }
    before.current = { key: rows.selected, y: selected < 0 ? -1 : place - element.scrollTop };
  }, [list, rows.selected]);
  // The rows became lower: so does the selected one not go out of sight.
  const highBefore = useRef(height);
  useLayoutEffect(() => {
    const tall = selected < 0 ? 0 : list[selected].height;
    const wasSeen = before.current.y >= 0 && before.current.y <= highBefore.current - tall;
    if (selected >= 0 && wasSeen && before.current.y > height - tall) scroller.current!.scrollTop = place + tall - height;
    highBefore.current = height;
  }, [height]);
  const scrolled = () => {
    setTop(scroller.current!.scrollTop);
    if (selected >= 0) before.current.y = place - scroller.current!.scrollTop;
  };
  const thread = found.keys.get(rows.selected ?? "");
  const waker = thread?.kind === "thread" && thread.id !== null && !store.path ? String(thread.id) : null;
  const middles = useMemo(() => middlesOf(list), [list]);
  const shared = {
    waker,
    middles,
    store,
    pictures,
    tracks: found.ids,
    selected: rows.selected,
    pinned: rows.pinned,
    setSpot,
    fold: (line: Line) => fold(store, line.track, !line.open),
    pin: (line: Line) => togglePin(store, line.track.key),
    remove: (line: Line) => store.setRows({ fields: rows.fields.filter((field) => field !== line.track.label) }),
  };
  useEffect(() => {
    const width = Math.min(scroller.current!.querySelector("canvas")?.clientWidth ?? 0, 4096);
    if (width > 0) ask(pictures, view, width, [...pinned, ...visible], filter);
    if (width > 0 && waker !== null) pictures.arrows.want(view, width, [waker]);
  });
  return (
    <section class={rows.low ? "tracks low" : "tracks"} id="timeline" aria-label="Rows">
      {pinned.length > 0 && (
        <div class="pinned" role="tree" aria-label="Rows that stay at the top">
          <Block {...shared} middles={null} list={pinned} top={0} height={high} prefix="pin" />
        </div>
      )}
      <div
        ref={scroller}
        class="scroller"
        id={ROWS_ID}
        role="tree"
        tabIndex={0}
        aria-label="CPUs, processes, disks, data streams"
        aria-activedescendant={visible.includes(list[selected]) ? `row-${rows.selected}` : undefined}
        onKeyDown={treeKeys(store, list, Math.max(1, Math.floor(height / ROW) - 1))}
        onScroll={scrolled}
      >
        <div style={{ height: `${total}px` }}>
          <Block {...shared} list={visible} top={from} height={height} prefix="row" />
        </div>
      </div>
      {ready && !ready.ready && <p class="tip">The states of CPUs and threads are being read: {ready.read} events.</p>}
      {found.omitted > 0 && <p class="tip">{found.omitted} rows of later threads are not shown.</p>}
      {error && <p class="tip error">No states of CPUs and threads: {error}</p>}
      {found.tracks.length > 0 && until !== null && until !== undefined && (
        <p class="tip">There are more events than marks: later ones are left out. Zoom in, or filter.</p>
      )}
      {trouble && <p class="tip error">{trouble}</p>}
      {list.length > 0 && (
        <div class="tip" id="row-tip" role={pointed ? undefined : "status"}>
          {tip}
        </div>
      )}
      {ready?.ready && !list.length && <p class="tip">{rows.filter || rows.active ? "No row matches." : "No rows."}</p>}
    </section>
  );
}
