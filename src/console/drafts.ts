import { useLayoutEffect, useState } from 'preact/hooks';
import { isSameJson } from './json.js';

/**
 * What is typed and stored nowhere yet, by its place: it outlives reload, Back, a browser that is ended, and is gone
 * when it was stored or is discarded. Kept in this browser alone, bounded; never used for passwords and secrets.
 */
const STORE = 'bsvc.draft.';
const MAX_DRAFTS = 30;
const MAX_CHARACTERS = 500_000;
const MAX_TOTAL_CHARACTERS = 2_000_000;
const MAX_AGE_MS = 30 * 86_400_000;
const WRITE_AFTER_MS = 200;

interface KeptDraft {
  name: string;
  at: number;
  /** As it is stored. */
  text: string;
}

/** What was typed since drafts were written last, and what the browser has no room for. */
const waiting = new Map<string, unknown>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Keeps what is typed at a place; it is written down a moment later, and when the page is left. */
export function keepDraft(name: string, draft: unknown): void {
  waiting.set(name, draft);
  timer ??= setTimeout(writeDrafts, WRITE_AFTER_MS);
}

export function forgetDraft(name: string): void {
  waiting.delete(name);
  withStore((store) => store.removeItem(STORE + name));
}

/** Forgets all, for one who leaves this browser to others. */
export function forgetDrafts(): void {
  waiting.clear();
  withStore((store) => listDrafts(store).forEach(({ name }) => store.removeItem(STORE + name)));
}

/** What was typed at a place; null where nothing is kept. */
export function readDraft<T>(name: string): T | null {
  if (waiting.has(name)) return waiting.get(name) as T;
  return withStore((store) => {
    const text = store.getItem(STORE + name);
    return text === null ? null : (JSON.parse(text) as { draft: T }).draft;
  });
}

export function countDrafts(): number {
  writeDrafts();
  return withStore((store) => listDrafts(store).length) ?? waiting.size;
}

/** Writes down what waits; false when something has no room. */
function writeDrafts(): boolean {
  clearTimeout(timer);
  timer = undefined;
  for (const [name, draft] of waiting) {
    const text = JSON.stringify({ at: Date.now(), draft });
    if (text.length > MAX_CHARACTERS) continue;
    const isKept = withStore((store) => {
      makeRoom(store, STORE + name, text.length);
      store.setItem(STORE + name, text);
      return true;
    });
    if (isKept) waiting.delete(name);
  }
  return waiting.size === 0;
}

/** Removes what is too old, and the oldest ones until another one has room. */
function makeRoom(store: Storage, key: string, characters: number): void {
  const others = listDrafts(store).filter(({ name }) => STORE + name !== key);
  let total = characters + others.reduce((sum, { text }) => sum + text.length, 0);
  let count = others.length + 1;
  for (const { name, at, text } of others) {
    const isOld = Date.now() - at > MAX_AGE_MS;
    if (!isOld && total <= MAX_TOTAL_CHARACTERS && count <= MAX_DRAFTS) continue;
    store.removeItem(STORE + name);
    total -= text.length;
    count--;
  }
}

/** The oldest first. */
function listDrafts(store: Storage): KeptDraft[] {
  const drafts: KeptDraft[] = [];
  for (let index = 0; index < store.length; index++) {
    const key = store.key(index)!;
    if (!key.startsWith(STORE)) continue;
    const text = store.getItem(key) ?? '';
    const at = Number(/^\{"at":(\d+)/.exec(text)?.[1] ?? 0);
    drafts.push({ name: key.slice(STORE.length), at, text });
  }
  return drafts.sort((a, b) => a.at - b.at);
}

/** null when the browser keeps nothing for this page, or has no room. */
function withStore<T>(work: (store: Storage) => T): T | null {
  try {
    return work(localStorage);
  } catch {
    return null;
  }
}

/** A field with something typed into it that no draft keeps. */
function isUnderWay(): boolean {
  const fields = document.querySelectorAll<HTMLInputElement>('dialog input, main form:not([role=search]) input');
  return [...fields].some((field) => field.value !== '' && !field.closest('[data-kept]'));
}

/** Loads the page again where it is, with what was typed; false when something would be lost by that. */
export function reloadWithDrafts(): boolean {
  if (isUnderWay() || !writeDrafts()) return false;
  location.reload();
  return true;
}

addEventListener('pagehide', () => writeDrafts());
document.addEventListener('visibilitychange', () => document.hidden && writeDrafts());
// The browser asks before the page goes with what has no room.
addEventListener('beforeunload', (event) => {
  if (!writeDrafts()) event.preventDefault();
});

interface Draft {
  /** Something is typed that is not stored. */
  isChanged: boolean;
  /** It was typed before this form was opened. */
  wasKept: boolean;
  /** What was typed is stored now, or is not wanted any more. */
  forget: () => void;
}

/**
 * The state of a form that begins as `initial` and outlives the page: the elements of the form stand inside one with
 * `data-kept`. Compared and kept as JSON.
 */
export function useDraft<T>(
  name: string,
  initial: T,
  isSame: (value: T, initial: T) => boolean = isSameJson,
): [value: T, set: (next: T) => void, draft: Draft] {
  const [kept] = useState(() => readDraft<T>(name));
  const [value, set] = useState<T>(kept ?? initial);
  const [isOver, setOver] = useState(false);
  const isChanged = !isOver && !isSame(value, initial);
  // With the very event: the effects that wait for a frame never come when the page is left before.
  useLayoutEffect(() => {
    if (isChanged) keepDraft(name, value);
    else forgetDraft(name);
  }, [name, value, isChanged]);
  const forget = (): void => {
    setOver(true);
    forgetDraft(name);
  };
  return [value, set, { isChanged, wasKept: kept !== null, forget }];
}
