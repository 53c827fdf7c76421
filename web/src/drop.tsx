// SPDX-License-Identifier: MIT
// Another trace: a file, an archive or a directory that is dropped on the page or chosen. The page copies it to the server, which opens it. A browser does
// not tell where it is.
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { bytes } from "./cells";
import { isSaved } from "./saved";

const MOST_FILES = 20_000;
const MOST_DEPTH = 16;

interface Dropped {
  names: string[]; // of what was dropped
  files: [path: string, file: File][];
  error?: string; // why these are not all
}

/** A name as one word of a shell. */
const quote = (name: string) => (/^[\w./:+-]+$/.test(name) && !name.startsWith("-") ? name : `'${name.replace(/'/g, "'\\''")}'`);

/** "./-x": a name that begins like an option. */
const word = (name: string) => quote(name.startsWith("-") ? `./${name}` : name);

/* ---- files ---- */

const isHidden = (path: string) => path.split("/").some((name) => name.startsWith("."));

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((done, failed) => entry.file(done, failed));
}

/** All of a directory: it tells of its entries in parts. */
async function entriesOf(directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = directory.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
    if (!some.length || all.length > MOST_FILES) return all;
    all.push(...some);
  }
}

/** Files below @entry, without hidden ones, which belong to no trace. */
async function collect(entry: FileSystemEntry, path: string, files: Dropped["files"], depth = 0): Promise<void> {
  if (isHidden(path)) return;
  if (files.length >= MOST_FILES || depth >= MOST_DEPTH) throw new Error(`${path} has too many files, or directories in each other, for a trace`);
  if (entry.isFile) files.push([path, await fileOf(entry as FileSystemFileEntry)]);
  else for (const below of await entriesOf(entry as FileSystemDirectoryEntry)) await collect(below, `${path}/${below.name}`, files, depth + 1);
}

async function droppedOf(transfer: { entries: FileSystemEntry[]; files: File[] }): Promise<Dropped> {
  const files: Dropped["files"] = [];
  if (transfer.entries.length) for (const entry of transfer.entries) await collect(entry, entry.name, files);
  else for (const file of transfer.files) files.push([file.name, file]);
  return { names: (transfer.entries.length ? transfer.entries : transfer.files).map((one) => one.name), files };
}

function chosenOf(list: FileList): Dropped {
  const files = [...list].map((file): [string, File] => [file.webkitRelativePath || file.name, file]).filter(([path]) => !isHidden(path));
  return { names: [...new Set(files.map(([path]) => path.split("/")[0]))], files };
}

/** Copy all files, and open what they are. @tell: how many bytes of all have gone. */
async function send(dropped: Dropped, tell: (done: number) => void, signal: AbortSignal): Promise<void> {
  const { drop, space } = await api.drop(signal);
  try {
    const size = dropped.files.reduce((sum, [, file]) => sum + file.size, 0);
    if (size > space) throw new Error(`it has ${bytes(size)}, and copies can have ${bytes(space)} more (kymo view --drop-space)`);
    let done = 0;
    for (const [path, file] of dropped.files) {
      await api.dropFile(drop, path, file, signal);
      tell((done += file.size));
    }
    await api.dropOpen(drop, signal);
  } catch (error) {
    await api.dropEnd(drop).catch(() => undefined); // it may have ended
    throw error;
  }
  const [, token] = window.location.pathname.split("/");
  window.top!.location.assign(`/${token}/d${drop}/`);
}

/* ---- the dialog ---- */

function Command({ names }: { names: string[] }) {
  const [copied, setCopied] = useState(false);
  const command = `kymo view ${names.map(word).join(" ")}`;
  const copy = () => {
    void navigator.clipboard.writeText(command).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <>
      <p>This command opens it without a copy, in the directory where it is:</p>
      <pre id="open-command">{command}</pre>
      <button onClick={copy}>{copied ? "Copied" : "Copy"}</button>{" "}
    </>
  );
}

/** Where one chooses with the keyboard. */
function Choose({ chosen }: { chosen: (dropped: Dropped) => void }) {
  const take = (event: Event) => {
    const { files } = event.currentTarget as HTMLInputElement;
    if (files?.length) chosen(chosenOf(files));
  };
  return (
    <>
      <p>Drop a trace on the page, or choose one: a directory, an archive, or a file of another tracer that kymo reads.</p>
      <p>
        <label>
          Files <input id="open-files" type="file" multiple onChange={take} />
        </label>
      </p>
      <p>
        <label>
          Directory <input id="open-directory" type="file" {...{ webkitdirectory: true }} onChange={take} />
        </label>
      </p>
    </>
  );
}

function Sending({ dropped }: { dropped: Dropped }) {
  const [done, setDone] = useState(0);
  const [error, setError] = useState("");
  const size = dropped.files.reduce((sum, [, file]) => sum + file.size, 0);
  useEffect(() => {
    const abort = new AbortController();
    send(dropped, setDone, abort.signal).catch((reason: Error) => !abort.signal.aborted && setError(reason.message));
    return () => abort.abort();
  }, [dropped]);
  return error ? (
    <>
      <p class="note error" role="alert">
        It does not open: {error}
      </p>
      <Command names={dropped.names} />
    </>
  ) : (
    <p role="status">
      {done < size ? `${bytes(done)} of ${bytes(size)} in ${dropped.files.length} files are copied …` : "The copy opens …"}{" "}
      <progress max={size || 1} value={done} />
    </p>
  );
}

const isPage = (name: string) => /\.html?$/i.test(name);

function Body({ dropped, chosen }: { dropped: Dropped | null; chosen: (dropped: Dropped) => void }) {
  if (!dropped) return <Choose chosen={chosen} />;
  if (dropped.names.length && dropped.names.every(isPage))
    return <p>This is a page, maybe of kymo view --save. Open it in the browser itself: drop it on the bar with the tabs.</p>;
  if (isSaved) return <Command names={dropped.names} />;
  if (!dropped.files.length)
    return (
      <>
        <p class="note error" role="alert">It does not open: {dropped.error ?? "it has no files"}</p>
        <Command names={dropped.names} />
      </>
    );
  return <Sending dropped={dropped} />;
}

function Dialog({ start, close }: { start: Dropped | null; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [dropped, setDropped] = useState(start);
  useEffect(() => dialog.current!.showModal(), []);
  useEffect(() => setDropped(start), [start]);
  return (
    <dialog ref={dialog} onClose={close} aria-label="Open a trace">
      <h2>Open {!dropped ? "another trace" : dropped.names.length === 1 ? dropped.names[0] : `${dropped.names.length} files`}</h2>
      <Body dropped={dropped} chosen={setDropped} />
      <button onClick={() => dialog.current!.close()}>{dropped ? "Cancel" : "Close"}</button>
    </dialog>
  );
}

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

/** The way to the dialog; set by the page. */
const opening: { ask: () => void } = { ask: () => undefined };

export const OPEN_HELP: [keys: string, what: string][] = isSaved ? [] : [["O", "open another trace (or drop it on the page)"]];

export const openKeys = (): Record<string, () => void> => (isSaved ? {} : { o: () => opening.ask() });

/** The page never leaves for a file that is dropped on it. */
export function Drop() {
  const [dropped, setDropped] = useState<Dropped | "choose" | null>(null);
  opening.ask = () => setDropped("choose");
  useEffect(() => {
    const over = (event: DragEvent) => hasFiles(event) && event.preventDefault();
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      // Entries are there only now.
      const items = [...(event.dataTransfer?.items ?? [])].filter((item) => item.kind === "file");
      const entries = items.map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
      const files = [...(event.dataTransfer?.files ?? [])];
      droppedOf({ entries, files }).then(
        (found) => setDropped(found.names.length ? found : null),
        (reason: Error) => setDropped({ names: files.map((file) => file.name), files: [], error: reason.message }),
      );
    };
    document.addEventListener("dragover", over);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("drop", drop);
    };
  }, []);
  return dropped && <Dialog start={dropped === "choose" ? null : dropped} close={() => setDropped(null)} />;
}
