import { number } from '../../format.js';
import { goTo, linkHere } from '../../routes.js';
import { PAGE_SIZES, type Listing } from './listing.js';
import type { Page } from './use-page.js';

/** Where earlier pages of a walk began, by the cursor that led on from them; lists go forwards alone. */
const STORE = 'bsvc.pages';
const MAX_NOTED = 500;

function readNoted(): Record<string, string> {
  try {
    return JSON.parse(sessionStorage.getItem(STORE) ?? '{}') as Record<string, string>;
  } catch {
    return {};
  }
}

function notePage(cursor: string, before: string): void {
  try {
    const noted = Object.entries({ ...readNoted(), [cursor]: before }).slice(-MAX_NOTED);
    sessionStorage.setItem(STORE, JSON.stringify(Object.fromEntries(noted)));
  } catch {
    // Then it is only gone back to the first page.
  }
}

/** From page to page, back too, and how many rows a page has. */
export function PageBar({ page: { rows, total, next, ms }, listing }: { page: Page; listing: Listing }) {
  const { cursor, size } = listing;
  const before = cursor === null ? undefined : readNoted()[cursor];
  return (
    <p class="pages">
      {before !== undefined && <a href={linkHere({ cursor: before === '' ? null : before })}>← Previous page</a>}
      {cursor !== null && <a href={linkHere({ cursor: null })}>First page</a>}
      {next !== null && (
        <a href={linkHere({ cursor: next })} onClick={() => notePage(next, cursor ?? '')}>
          Next page →
        </a>
      )}
      {rows && (
        <span class="muted">
          {number(rows.length)} shown{total !== null && total > rows.length && ` of ${number(total)}`}
          {ms > 0 && ` · ${ms} ms`}
        </span>
      )}
      <label class="end">
        <span class="hidden">Rows of a page</span>
        <select
          value={String(size)}
          onChange={(event) => goTo(linkHere({ limit: event.currentTarget.value, cursor: null }))}
        >
          {PAGE_SIZES.map((each) => (
            <option key={each} value={String(each)}>
              {each} a page
            </option>
          ))}
        </select>
      </label>
    </p>
  );
}
