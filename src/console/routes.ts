import { computed, signal } from '@preact/signals';

/** Where the console is: every state is a link, and stands after the `#`, where no server sees it. */
export interface ConsolePlace {
  /** Such as `['p', '<project>', 'documents', 'posts']`. */
  parts: readonly string[];
  query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener('hashchange', () => (hash.value = location.hash));

export const place = computed<ConsolePlace>(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split(/\?(.*)/s);
  const parts = path.split('/').filter((part) => part !== '');
  return { parts: parts.map(decode), query: new URLSearchParams(query) };
});

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

type Query = Readonly<Record<string, string | null | undefined>>;

/** The address of a place; parts of the query that are empty are left out. */
export function linkTo(parts: readonly string[], query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  const written = search.toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${written === '' ? '' : `?${written}`}`;
}

/** What the query of the place has under a name, where it is one of the choices. */
export function chosenOf<Value extends string>(
  name: string,
  choices: readonly (readonly [value: Value, shown: string])[],
): Value | null {
  const given = place.value.query.get(name);
  return choices.find(([value]) => value === given)?.[0] ?? null;
}

/** The present place with another query: what is null goes, what is not named stays. */
export function linkHere(change: Query): string {
  const { parts, query } = place.value;
  return linkTo(parts, { ...Object.fromEntries(query), ...change });
}

export function goTo(link: string): void {
  location.hash = link;
  // At once, not with the event that follows: what is left is loaded no more.
  hash.value = location.hash;
}

/** Goes there without a step in the history: what was there is not to be come back to. */
export function replaceWith(link: string): void {
  history.replaceState(null, '', link);
  hash.value = location.hash;
}
