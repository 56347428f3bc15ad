import { below, withQuery } from '../../api-paths.js';
import { documentsIn, USERS, type Collection } from '../../collection.js';
import { useLoad } from '../../load.js';
import { ErrorNote } from '../../parts/basics.js';
import { titleField } from '../../parts/schema-form/form-place.js';
import { linkTo, place } from '../../routes.js';
import { projectPath } from '../../session.js';
import type { RecordView } from './use-record.js';

const SHOWN = 10;

/** The documents that a document names, and those that name it. */
export function ReferencesTab({ collection, collections, record }: RecordView) {
  const id = record.stored?._id ?? '';
  const named = refsOf(collection).flatMap(({ name, ref }) =>
    [record.stored?.[name]].flat().flatMap((each) => (typeof each === 'string' ? [{ name, ref, id: each }] : [])),
  );
  const naming = collections.flatMap((other) =>
    other.name === USERS
      ? []
      : refsOf(other).flatMap(({ name, ref }) => (ref === collection.name ? [{ other, name }] : [])),
  );
  return (
    <>
      <h3>It names</h3>
      {named.length === 0 && <p class="muted">No other document.</p>}
      <ul class="refs">
        {named.map(({ name, ref, id: to }) => (
          <li key={`${name} ${to}`}>
            <a href={linkToDocument(ref, to)}>
              {name}: {ref} {to}
            </a>
          </li>
        ))}
      </ul>
      <h3>It is named by</h3>
      {naming.length === 0 && <p class="muted">No collection has a field that points to {collection.name}.</p>}
      {naming.map(({ other, name }) => (
        <Naming key={`${other.name} ${name}`} other={other} field={name} id={id} />
      ))}
    </>
  );
}

function Naming({ other, field, id }: { other: Collection; field: string; id: string }) {
  const title = titleField(other);
  const documents = below(projectPath(), '/collections/{collection}/documents', { collection: other.name });
  const query = { [field]: id, limit: SHOWN + 1, fields: title ?? '_id' };
  const { data, error, reload } = useLoad(withQuery(documents, query));
  const items = data && documentsIn(data);
  const [, project = ''] = place.value.parts;
  const all = linkTo(['p', project, 'documents', other.name], { [field]: id });
  return (
    <section>
      <h4>
        {other.name}.{field}
      </h4>
      <ErrorNote error={error} onRetry={reload} />
      {items?.length === 0 && <p class="muted">None.</p>}
      <ul class="refs">
        {items?.slice(0, SHOWN).map((found) => (
          <li key={found._id}>
            <a href={linkToDocument(other.name, found._id)} dir="auto">
              {title !== null && typeof found[title] === 'string' ? `${found[title]} · ` : ''}
              {found._id}
            </a>
          </li>
        ))}
      </ul>
      {(items?.length ?? 0) > SHOWN && <a href={all}>All of them</a>}
    </section>
  );
}

function refsOf({ fields }: Collection): { name: string; ref: string }[] {
  return fields.flatMap(({ name, ref, items }) => {
    const to = ref ?? items?.ref;
    return to === undefined ? [] : [{ name, ref: to }];
  });
}

function linkToDocument(collection: string, id: string): string {
  const [, project = ''] = place.value.parts;
  return collection === USERS
    ? linkTo(['p', project, USERS], { open: id })
    : linkTo(['p', project, 'documents', collection], { open: id });
}
