import { useLayoutEffect, useState } from 'preact/hooks';
import { forgetDraft, keepDraft, readDraft } from './drafts.js';

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

const isSameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
