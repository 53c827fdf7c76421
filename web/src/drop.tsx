// SPDX-License-Identifier: MIT
// A file or directory that is dropped on the page: the browser does not tell where it is, so the page tells how to open it.
import { useEffect, useRef, useState } from "preact/hooks";

const MOST = 20;

/** A name as one word of a shell. */
const quote = (name: string) => (/^[\w./:+-]+$/.test(name) && !name.startsWith("-") ? name : `'${name.replace(/'/g, "'\\''")}'`);

/** "./-x": a name that begins like an option. */
const word = (name: string) => quote(name.startsWith("-") ? `./${name}` : name);

function Dropped({ names, close }: { names: string[]; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [copied, setCopied] = useState(false);
  useEffect(() => dialog.current!.showModal(), []);
  const pages = names.length > 0 && names.every((name) => /\.html?$/i.test(name));
  const command = `kymo view ${names.map(word).join(" ")}`;
  const copy = () => {
    void navigator.clipboard.writeText(command).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <dialog ref={dialog} onClose={close} aria-label="Open a trace">
      <h2>Open {names.length === 1 ? names[0] : `${names.length} files`}</h2>
      {pages ? (
        <p>This is a page, maybe of kymo view --save. Open it in the browser itself: drop it on the bar with the tabs.</p>
      ) : (
        <>
          <p>
            A browser does not tell a page where a file is, and the viewer opens only what its command names. This command, in the
            directory where it is, opens it: a trace, a recording, an archive, or a file of another tracer that kymo reads.
          </p>
          <pre id="open-command">{command}</pre>
          <button onClick={copy}>{copied ? "Copied" : "Copy"}</button>
        </>
      )}{" "}
      <button onClick={() => dialog.current!.close()}>Close</button>
    </dialog>
  );
}

const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

/** The page never leaves for a file that is dropped on it. */
export function Drop() {
  const [names, setNames] = useState<string[] | null>(null);
  useEffect(() => {
    const over = (event: DragEvent) => hasFiles(event) && event.preventDefault();
    const drop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      const files = [...(event.dataTransfer?.files ?? [])].slice(0, MOST);
      setNames(files.length ? files.map((file) => file.name) : null);
    };
    document.addEventListener("dragover", over);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("drop", drop);
    };
  }, []);
  return names && <Dropped names={names} close={() => setNames(null)} />;
}
