import { useState } from 'preact/hooks';
import { below, withQuery, pathTo } from '../../api-paths.js';
import { addressOf, call } from '../../api.js';
import type { Collection, CollectionField, CollectionPath, DocumentsPath } from '../../collection.js';
import { useLoad } from '../../load.js';
import { attempt, ErrorNote } from '../../parts/basics.js';
import { PullDown } from '../../parts/pull-down.js';
import { titleField } from '../../parts/schema-form/form-place.js';
import { linkTo, place, goTo, linkHere } from '../../routes.js';
import { mayChange, played } from '../../session.js';
import { FilterLine } from './filter-line.js';
import type { GridColumn } from './grid-columns.js';
import { ColumnMenu } from './grid-head.js';
import { filterQuery, type Listing } from './listing.js';
import { Field, Form } from '../../parts/form.js';

/** What narrows a list, how it is shown, and what is done with all of it. */
export function GridBar({
  own,
  collection,
  fields,
  columns,
  listing,
  onColumns,
  onReset,
}: {
  own: CollectionPath;
  collection: Collection;
  fields: readonly CollectionField[];
  columns: readonly GridColumn[];
  listing: Listing;
  onColumns: (next: readonly GridColumn[]) => void;
  onReset: () => void;
}) {
  const { name } = collection;
  return (
    <div class="bar">
      <FilterLine fields={fields} filters={listing.filters} searched={titleField(collection)} />
      <SavedViews of={collection} />
      <ColumnMenu
        columns={columns}
        fields={fields}
        onColumns={onColumns}
        onReset={onReset}
        newField={mayChange.value ? linkToNewField(name) : null}
      />
      {played.value === null && <PlayAs />}
      {played.value === null && <Export documents={below(own, '/documents')} name={name} listing={listing} />}
    </div>
  );
}

const linkToNewField = (name: string): string =>
  linkTo(['p', place.value.parts[1] ?? '', 'collections'], { open: name, edit: '1', add: '1' });

/** Of what is filtered. */
function Export({ documents, name, listing }: { documents: DocumentsPath; name: string; listing: Listing }) {
  return (
    <a
      class="button"
      href={addressOf(withQuery(below(documents, '/export'), filterQuery(listing)))}
      download={`${name}.ndjson`}
    >
      {listing.filters.length === 0 ? 'Export' : 'Export filtered'}
    </a>
  );
}

const VIEWS = pathTo('/api/admin/me/views');
/** What belongs to a moment, not to a view. */
const PASSING = ['cursor', 'open', 'from', 'tab', 'import'];

/** Saved filters and sort orders of a collection, stored on the server and loaded on demand. */
function SavedViews({ of: { name: collection } }: { of: Pick<Collection, 'name'> }) {
  const [isAsked, setAsked] = useState(false);
  const { data, error, reload } = useLoad(isAsked ? VIEWS : null);
  const [name, setName] = useState('');
  const { parts, query } = place.value;
  const projectId = parts[1] ?? '';
  const views = data?.items.filter((view) => view.projectId === projectId && view.collection === collection);
  const trimmed = name.trim();
  const save = async (): Promise<string> => {
    const kept = new URLSearchParams([...query].filter(([key]) => !PASSING.includes(key))).toString();
    await call('POST', VIEWS, { body: { projectId, collection, name: trimmed, query: kept } });
    setName('');
    reload();
    return `The view ${trimmed} is saved`;
  };
  const remove = async (view: { id: string; name: string }): Promise<string> => {
    await call('DELETE', below(VIEWS, '/{view}', { view: view.id }));
    reload();
    return `The view ${view.name} is removed`;
  };
  return (
    <PullDown
      label={views?.length ? `Views (${views.length})` : 'Views'}
      onOpen={() => (isAsked ? reload() : setAsked(true))}
    >
      <ErrorNote error={error} />
      <ul>
        {views?.map((view) => (
          <li key={view.id}>
            <a href={`${linkTo(parts)}?${view.query}`}>{view.name}</a>
            <button
              class="small quiet end"
              aria-label={`Remove the view ${view.name}`}
              onClick={() => void attempt(() => remove(view))}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (trimmed !== '') void attempt(save);
        }}
      >
        <label>
          Save this view as
          <input
            value={name}
            maxLength={60}
            autocomplete="off"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <button class="small" disabled={trimmed === ''}>
          Save the view
        </button>
      </form>
    </PullDown>
  );
}

/** Says as whom a list is shown, and leads back. */
export function PlayedAs() {
  const as = played.value;
  if (as === null) return null;
  return (
    <p class="trouble" role="status">
      You see this list as <b>{as === 'anyone' ? 'an anonymous caller' : as}</b> with a publishable key does. Nothing
      can be changed here meanwhile; a document that you open is shown whole, and its tab “Access” says why this user
      may read it. <a href={linkHere({ as: null, cursor: null })}>See all again</a>
    </p>
  );
}

/** Asks as whom the list is to be shown. */
function PlayAs() {
  const [typed, setTyped] = useState('');
  const play = (): void => goTo(linkHere({ as: typed.trim() || 'anyone', cursor: null, trash: null, open: null }));
  return (
    <PullDown label="View as…">
      <Form onSubmit={play}>
        <Field label="Email or id; empty for an anonymous caller" value={typed} onChange={setTyped} />
        <button class="small">See the list as this user</button>
      </Form>
    </PullDown>
  );
}
