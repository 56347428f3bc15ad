import { useMemo, useState } from 'preact/hooks';
import { below, withQuery } from '../../api-paths.js';
import { prepare, call } from '../../api.js';
import type { Collection, CollectionPath, CollectionsPath, DocumentsPath } from '../../collection.js';
import { number, howMany } from '../../format.js';
import { useLoad } from '../../load.js';
import { ErrorNote, say, showError } from '../../parts/basics.js';
import { Commands } from '../../parts/commands.js';
import { Confirm } from '../../parts/confirm.js';
import { Empty, Tabs } from '../../parts/page-head.js';
import { goTo, linkHere, place } from '../../routes.js';
import { PlayedAs, GridBar } from './grid-bar.js';
import { mayChange, played } from '../../session.js';
import { columnFields, forgetColumns, keepColumns, readColumns, TRASHED, type GridColumn } from './grid-columns.js';
import { Grid } from './grid.js';
import {
  filterQuery,
  isIndexed,
  pageQuery,
  readListing,
  sortOf,
  type Listing,
  usePage,
  useRefTitles,
  PAGE_SIZES,
  type Page,
} from './listing.js';

/** The documents of a collection as a grid, with what narrows and orders them. */
export function Browser({
  base,
  collection,
  collections,
  onReady,
}: {
  base: CollectionsPath;
  collection: Collection;
  collections: readonly Collection[];
  onReady: (reload: () => void) => void;
}) {
  const own = below(base, '/{collection}', { collection: collection.name });
  const documents = below(own, '/documents');
  const listing = readListing(place.value.query);
  const { sort, isTrash } = listing;
  const { fields, columns, isReady, choose, reset } = useColumns(own, collection);
  const page = usePage(documents, listing, isReady ? columns : null);
  onReady(page.reload);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const shown = useMemo(
    () => (isTrash ? [{ name: TRASHED.name, width: 176 }, ...columns] : columns),
    [isTrash, columns],
  );
  const byName = useMemo(() => new Map([...fields, TRASHED].map((field) => [field.name, field])), [fields]);
  const titles = useRefTitles(base, page.rows, fields, collections);
  const ids = (page.rows ?? []).map(({ _id }) => _id).filter((id) => selected.has(id));
  const reload = (): void => {
    setSelected(new Set());
    page.reload();
  };
  const { name: sorted } = sortOf(sort);
  return (
    <>
      <GridBar
        own={own}
        collection={collection}
        fields={fields}
        columns={columns}
        listing={listing}
        onColumns={choose}
        onReset={reset}
      />
      <PlayedAs />
      {played.value === null && (
        <Tabs
          label="Documents"
          current={String(isTrash)}
          tabs={[
            ['false', 'Active', linkHere({ trash: null, cursor: null })],
            ['true', 'Trash', linkHere({ trash: '1', cursor: null })],
          ]}
        />
      )}
      {sort !== '' && !isIndexed(collection, sorted) && <Unindexed name={sorted} />}
      <ErrorNote error={page.error} onRetry={page.reload} />
      {mayChange.value && ids.length > 0 && (
        <SelectionBar
          documents={documents}
          ids={ids}
          isTrash={isTrash}
          onDone={reload}
          onNone={() => setSelected(new Set())}
        />
      )}
      <Grid
        key={`${documents} ${isTrash}`}
        collection={collection}
        documents={documents}
        columns={shown}
        fields={byName}
        rows={page.rows}
        titles={titles}
        loading={page.loading}
        listed={JSON.stringify(listing)}
        sort={sort}
        selected={selected}
        isFixed={!mayChange.value}
        empty={<Nothing listing={listing} />}
        onColumns={choose}
        onSelect={setSelected}
        onChange={page.reload}
        onSort={(next) => goTo(linkHere({ sort: next, cursor: null }))}
      />
      <PageBar page={page} listing={listing} />
      <Commands
        of={() => [
          prepare('GET', withQuery(documents, pageQuery(listing, columns))),
          prepare('GET', withQuery(below(documents, '/export'), filterQuery(listing))),
        ]}
      />
    </>
  );
}

/** The columns that are shown of a collection, as they were chosen last in this browser. */
function useColumns(own: CollectionPath, collection: Collection) {
  const shape = useLoad(collection.mode === 'flexible' ? below(own, '/shape') : null);
  const fields = useMemo(
    () => columnFields(collection, shape.data?.fields.map(({ name }) => name) ?? []),
    [collection, shape.data],
  );
  const [chosen, setChosen] = useState<readonly GridColumn[] | null>(null);
  const columns = useMemo(() => chosen ?? readColumns(own, fields), [chosen, own, fields]);
  return {
    fields,
    columns,
    isReady: collection.mode !== 'flexible' || shape.data !== null || shape.error !== null,
    choose: (next: readonly GridColumn[]): void => {
      const kept = next.filter(({ name }) => name !== TRASHED.name);
      setChosen(kept);
      keepColumns(own, kept);
    },
    reset: (): void => {
      forgetColumns(own);
      setChosen(null);
    },
  };
}

const Unindexed = ({ name }: { name: string }) => (
  <p class="muted">No index for sorting by {name}. On large collections this is slow and stops after ten seconds.</p>
);

/** Where no row is: why, and what to do next. */
function Nothing({ listing: { filters, isTrash, cursor } }: { listing: Listing }) {
  if (isTrash) return <Empty title="The trash is empty" />;
  if (filters.length > 0 || cursor !== null) return <Empty title="No document matches" />;
  return (
    <Empty title="No documents yet">
      {mayChange.value && (
        <p>
          <a href={linkHere({ open: 'new' })}>Insert the first one</a> or{' '}
          <a href={linkHere({ import: '1' })}>import a file</a>
        </p>
      )}
    </Empty>
  );
}

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
function PageBar({ page: { rows, total, next, ms }, listing }: { page: Page; listing: Listing }) {
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

/** What can be done with the chosen rows. */
function SelectionBar({
  documents,
  ids,
  isTrash,
  onDone,
  onNone,
}: {
  documents: DocumentsPath;
  ids: readonly string[];
  isTrash: boolean;
  onDone: () => void;
  onNone: () => void;
}) {
  const [isErasing, setErasing] = useState(false);
  const all = async (act: 'trash' | 'recover', chosen: readonly string[]): Promise<void> => {
    try {
      const path = act === 'trash' ? below(documents, '/trash') : below(documents, '/recover');
      const { done, refused } = await call('POST', path, { body: { ids: [...chosen] } });
      const left = refused.length > 0 ? `, ${refused.length} refused: ${refused[0]!.message}` : '';
      say(`${done.length} ${act === 'trash' ? 'moved to the trash' : 'restored'}${left}`, {
        isBad: refused.length > 0,
        ...(done.length > 0 && { undo: () => void all(act === 'trash' ? 'recover' : 'trash', done) }),
      });
      onDone();
    } catch (error) {
      showError(error);
    }
  };
  const erase = async (): Promise<void> => {
    for (const document of ids) {
      await call('DELETE', below(documents, '/{document}', { document }), { query: { permanent: true } });
    }
    say(`${howMany(ids.length, 'document')} deleted permanently`);
    onDone();
  };
  return (
    <div class="selection" role="toolbar" aria-label="Selected documents">
      <b>{ids.length} selected</b>
      {isTrash ? (
        <>
          <button onClick={() => void all('recover', ids)}>Take back</button>
          <button class="danger" onClick={() => setErasing(true)}>
            Delete permanently…
          </button>
        </>
      ) : (
        <button onClick={() => void all('trash', ids)}>Move to the trash</button>
      )}
      <button class="quiet" onClick={onNone}>
        Select none
      </button>
      {isErasing && (
        <Confirm
          title={`Delete ${howMany(ids.length, 'document')} permanently`}
          text="This cannot be undone."
          name={String(ids.length)}
          action="Delete permanently"
          onClose={() => setErasing(false)}
          request={erase}
        />
      )}
    </div>
  );
}
