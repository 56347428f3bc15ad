/**
 * Text that was typed and is stored nowhere yet, by its place. It outlives a reload that the console does by itself, in
 * the tab that it was typed in, and is gone from the browser when it is taken up again.
 */
const typed = new Map<string, unknown>();
const STORE = 'bsvc.drafts';

/** Notes what is typed at a place, or with undefined that nothing is. */
export function noteDraft(name: string, draft: unknown): void {
  if (draft === undefined) typed.delete(name);
  else typed.set(name, draft);
}

/** Takes up the text of a place, also from before the page was loaded anew; null where there is none. */
export function takeDraft<T>(name: string): T | null {
  if (typed.has(name)) return typed.get(name) as T;
  try {
    const kept = JSON.parse(sessionStorage.getItem(STORE) ?? '{}') as Record<string, T>;
    const { [name]: draft = null, ...others } = kept;
    if (draft !== null) sessionStorage.setItem(STORE, JSON.stringify(others));
    return draft;
  } catch {
    return null;
  }
}

/** Keeps for the next page what is typed on this one; false when the browser has no room for it. */
function keepDrafts(): boolean {
  try {
    sessionStorage.setItem(STORE, JSON.stringify(Object.fromEntries(typed)));
    return true;
  } catch {
    return false;
  }
}

/** A dialog or a field with something typed into it that nobody keeps. */
function isUnderWay(): boolean {
  if (typed.size > 0) return false;
  const fields = document.querySelectorAll<HTMLInputElement>('dialog input, main form:not([role=search]) input');
  return [...fields].some(({ value }) => value !== '');
}

/** Loads the page anew where it is, with what was typed; false when something would be lost by that. */
export function reloadWithDrafts(): boolean {
  if (isUnderWay() || !keepDrafts()) return false;
  location.reload();
  return true;
}
