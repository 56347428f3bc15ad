import { addressOf } from '../../api.js';
import { below, withQuery } from '../../api-paths.js';
import type { Collection, CollectionField, CollectionPath, DocumentsPath } from '../../collection.js';
import { titleField } from '../../parts/schema-form/form-place.js';
import { linkTo, place } from '../../routes.js';
import { PlayAs } from '../../rules/play-as.js';
import { mayChange, played } from '../../session.js';
import { ColumnMenu } from './column-menu.js';
import { FilterLine } from './filter-line.js';
import type { GridColumn } from './grid-columns.js';
import { filterQuery, type Listing } from './listing.js';
import { SavedViews } from './saved-views.js';

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
