import { useEffect, useRef, useState } from 'preact/hooks';
import { loadPart } from './basics.js';

/** The editor's code: asked for early, it comes beside what is to be shown in it. */
export const loadEditor = () => loadPart(() => import('./code-mirror.js'));

/** A text as JSON with line numbers and marked mistakes; the editor is loaded when the first one is shown. */
export function JsonEditor({
  text,
  label,
  isReadOnly = false,
  onChange,
}: {
  text: string;
  label: string;
  isReadOnly?: boolean;
  onChange?: (text: string) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const changed = useRef(onChange);
  changed.current = onChange;
  const [ready, setReady] = useState(false);
  useEffect(() => {
    let close: (() => void) | undefined;
    let gone = false;
    void loadEditor().then((editor) => {
      if (gone || !host.current || !editor) return;
      close = editor.openEditor(host.current, { text, label, isReadOnly, onChange: (next) => changed.current?.(next) });
      setReady(true);
    });
    return () => {
      gone = true;
      close?.();
    };
  }, [text, label, isReadOnly]);
  return (
    <div class="editor" aria-busy={!ready}>
      <div ref={host} class="editor-host" />
    </div>
  );
}

const WHOLE = /(?<=[[{,:\s])-?\d{16,}(?=[\s,\]}])/g;

/** A whole number that would lose digits on its way to the store; null when there is none. */
export function findLostNumber(json: string): string | null {
  const withoutTexts = json.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  return withoutTexts.match(WHOLE)?.find((digits) => !Number.isSafeInteger(Number(digits))) ?? null;
}
