import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Refusal, refusalOf } from '../api.js';

/** A note on an event, for a few seconds, with the means to answer it. */
interface Note {
  text: string;
  isBad: boolean;
  undo?: () => void;
}
const note = signal<Note | null>(null);
let noteTimer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, more: { isBad?: boolean; undo?: () => void } = {}): void {
  clearTimeout(noteTimer);
  note.value = { text, isBad: more.isBad === true, ...(more.undo && { undo: more.undo }) };
  noteTimer = setTimeout(() => (note.value = null), 10_000);
}

export const tellRefusal = (error: unknown): void => say(describeRefusal(error), { isBad: true });

/** Does something that needs no form, and says how it ended. */
export async function attempt(work: () => Promise<string>): Promise<void> {
  try {
    say(await work());
  } catch (refusal) {
    tellRefusal(refusal);
  }
}

function describeRefusal(error: unknown): string {
  if (!(error instanceof Refusal)) return String(error);
  return `${error.message} (${error.code}${error.requestId === '' ? '' : `, request ${error.requestId}`})`;
}

export function Notes() {
  const shown = note.value;
  return (
    <div class="notes" role="status">
      {shown && (
        <p class={shown.isBad ? 'note bad' : 'note'}>
          {shown.text}{' '}
          {shown.undo && (
            <button
              onClick={() => {
                note.value = null;
                shown.undo?.();
              }}
            >
              Undo
            </button>
          )}
          <button aria-label="Close this note" onClick={() => (note.value = null)}>
            ×
          </button>
        </p>
      )}
    </div>
  );
}

export function Trouble({ error, onRetry }: { error: Refusal | null; onRetry?: () => void }) {
  if (!error) return null;
  return (
    <p class="trouble" role="alert">
      {describeRefusal(error)} {onRetry && <button onClick={onRetry}>Try again</button>}
    </p>
  );
}

/** A dialog of the browser's own: it keeps the focus and gives it back, and Esc closes it. */
const TYPED = 'label input:not([type=checkbox], [type=file], [readonly]), label textarea';

export function Dialog({
  title,
  onClose,
  children,
  wide,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before anybody can see it or press a key: one that is shown a moment later misses an Esc of that moment.
  useLayoutEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    // What is to be typed, rather than the button that closes.
    ref.current?.querySelector<HTMLElement>(TYPED)?.focus();
    return () => {
      if (opener?.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog ref={ref} class={wide ? 'wide' : ''} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button aria-label="Close" onClick={() => ref.current?.close()}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** Runs one thing at a time: whether it is under way, how to start it, and what it was refused with. */
export function useAction(work: () => Promise<void>): [busy: boolean, run: () => Promise<void>, error: Refusal | null] {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Refusal | null>(null);
  const run = async (): Promise<void> => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (thrown) {
      setError(refusalOf(thrown));
    } finally {
      setBusy(false);
    }
  };
  return [busy, run, error];
}

export function Copy({ text, what }: { text: string; what: string }) {
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => say(`${what} copied`),
      () => say('The browser does not let pages copy here: mark the text and copy it', { isBad: true }),
    );
  };
  return (
    <button class="small" onClick={copy} aria-label={`Copy ${what}`}>
      Copy
    </button>
  );
}
