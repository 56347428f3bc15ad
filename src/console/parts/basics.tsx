import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useId, useState, useLayoutEffect, useRef } from 'preact/hooks';
import { Refusal, refusalOf, send, type Prepared } from '../api.js';
import { invalidate } from '../load.js';
import { renewPage } from '../outdated-page.js';
import { Icon } from './icon.js';

/** A note on an event, with the means to answer it. */
interface Note {
  text: string;
  isBad: boolean;
  undo?: () => void;
}
const note = signal<Note | null>(null);
/**
 * A refusal takes longer to read than that something was done; what can be undone waits for the next note (WCAG 2.2.1).
 */
const DONE_MS = 5_000;
const REFUSED_MS = 10_000;
let noteTimer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, more: { isBad?: boolean; undo?: () => void } = {}): void {
  clearTimeout(noteTimer);
  note.value = { text, isBad: more.isBad === true, ...(more.undo && { undo: more.undo }) };
  if (!more.undo) noteTimer = setTimeout(() => (note.value = null), more.isBad ? REFUSED_MS : DONE_MS);
}

export const showError = (error: unknown): void => say(describeError(error), { isBad: true });

/** Does something that needs no form, and says how it ended. */
export async function attempt(work: () => Promise<string>): Promise<void> {
  try {
    say(await work());
  } catch (refusal) {
    showError(refusal);
  }
}

/** Sends a request that needs no form, says how it ended, and loads again what it has changed. */
export async function act(request: Prepared, done: string): Promise<void> {
  await attempt(async () => {
    await send(request);
    invalidate(request.path);
    return done;
  });
}

function describeError(error: unknown): string {
  if (!(error instanceof Refusal)) return String(error);
  return `${error.message} (${error.code}${error.requestId === '' ? '' : `, request ${error.requestId}`})`;
}

export function Notes() {
  return (
    <div class="notes" role="status">
      {note.value && <NoteLine {...note.value} onClose={() => (note.value = null)} />}
    </div>
  );
}

function NoteLine({ text, isBad, undo, onClose }: Note & { onClose: () => void }) {
  return (
    <p class={isBad ? 'note bad' : 'note'}>
      <span>{text}</span>
      {undo && (
        <button
          onClick={() => {
            onClose();
            undo();
          }}
        >
          Undo
        </button>
      )}
      <button class="icon" aria-label="Close this note" onClick={onClose}>
        <Icon name="close" />
      </button>
    </p>
  );
}

export function ErrorNote({ error, onRetry }: { error: Refusal | null; onRetry?: () => void }) {
  if (!error) return null;
  return (
    <p class="trouble" role="alert">
      {describeError(error)} {onRetry && <button onClick={onRetry}>Try again</button>}
    </p>
  );
}

/** A question over the page, or over a drawer. */
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
  const ref = useModal();
  const id = useId();
  return (
    <dialog ref={ref} class={wide ? 'wide' : ''} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button class="quiet icon" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <div class="body">{children}</div>
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

const TYPED = 'label input:not([type=checkbox], [type=file], [readonly]), label textarea';

/** Opens a dialog of the browser's own when it is drawn: it keeps the focus and gives it back, and Esc closes it. */
export function useModal() {
  const ref = useRef<HTMLDialogElement>(null);
  // Before the first paint: shown later, it would miss an Esc key pressed in between.
  useLayoutEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    ref.current?.showModal();
    // What is to be typed, rather than the button that closes.
    ref.current?.querySelector<HTMLElement>(TYPED)?.focus();
    return () => {
      if (opener?.isConnected) opener.focus();
    };
  }, []);
  return ref;
}

/** Code that few screens want, loaded when one does; null when it cannot be, which the page says. */
export async function loadPart<T>(load: () => Promise<T>): Promise<T | null> {
  try {
    return await load();
  } catch {
    // A newer server has other parts.
    await renewPage();
    say('A part of this page could not be loaded: load the page again when the server is back', { isBad: true });
    return null;
  }
}
