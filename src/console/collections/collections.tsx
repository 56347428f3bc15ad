import { useState } from 'preact/hooks';
import { prepare } from '../api.js';
import { below, withQuery } from '../api-paths.js';
import { bytes, moment, number } from '../format.js';
import { useLoad } from '../load.js';
import { Dialog } from '../parts/basics.js';
import { Commands } from '../parts/commands.js';
import { Confirm } from '../parts/confirm.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { Drawer } from '../parts/drawer.js';
import { Table } from '../parts/table.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { mayChange, projectPath } from '../session.js';
import { CollectionEditor } from './collection-edit.js';
import { USERS, type Collection, type CollectionField, type CollectionsPath } from '../collection.js';
import { RulesEditor } from '../rules/rules-editor.js';
import { SchemaDialog } from './schema.js';
import { presentExpire, writeUnique } from './use-settings.js';

export function Collections() {
  const { parts, query } = place.value;
  const id = parts[1] ?? '';
  const base = below(projectPath(), '/collections');
  const list = useLoad(withQuery(base, { sizes: true }));
  const { data, reload } = list;
  const open = data?.items.find(({ name }) => name === query.get('open'));
  const isEdited = query.get('edit') === '1' && mayChange.value;
  const isNew = query.get('new') === '1' && mayChange.value;
  const isRuled = query.get('rules') === '1';
  const close = (): void =>
    goTo(linkHere({ open: null, edit: null, new: null, schema: null, rules: null, as: null, add: null }));
  const done = (): void => {
    reload();
    close();
  };
  return (
    <>
      <CrudScreen
        title="Collections"
        count={data?.items.length}
        actions={
          <>
            <SchemaLink />
            <a class="button primary" href={linkHere({ new: '1' })}>
              Register a collection…
            </a>
          </>
        }
        buttons={<SchemaLink />}
        list={list}
        keyOf={({ name }) => name}
        empty="No collections."
        columns={[
          { name: 'Name', show: ({ name }) => opens(name, name) },
          { name: 'Mode', show: ({ mode }) => mode },
          { name: 'Documents', kind: 'number', show: ({ size }) => (size ? number(size.documents) : '') },
          { name: 'Size', kind: 'number', show: ({ size }) => (size ? bytes(size.bytes) : '') },
          { name: 'Fields', kind: 'number', show: ({ fields }) => fields.length },
          { name: 'Indexes', kind: 'number', show: ({ indexes }) => indexes.length },
          { name: 'Access', show: describeAccess },
          { name: 'Changed', show: ({ updatedAt }) => moment(updatedAt) },
        ]}
      />
      {open && isRuled && (
        <Dialog key={open.name} title={open.name} onClose={close} wide>
          <RulesEditor id={id} base={base} collection={open} />
        </Dialog>
      )}
      {open && !isRuled && !isEdited && (
        <Drawer key={open.name} title={open.name} onClose={close}>
          <OneCollection id={id} base={base} collection={open} onDropped={close} />
        </Drawer>
      )}
      {data && (isNew || (open && isEdited && !isRuled)) && (
        <CollectionEditor
          key={open?.name ?? ''}
          base={base}
          collection={open ?? null}
          collections={data.items.map(({ name }) => name)}
          onSaved={done}
          onClose={close}
        />
      )}
      {query.get('schema') === '1' && <SchemaDialog base={below(projectPath(), '/schema')} onClose={close} />}
    </>
  );
}

const SchemaLink = () => (
  <a class="button" href={linkHere({ schema: '1' })}>
    {mayChange.value ? 'Schema as a file…' : 'Schema as a file'}
  </a>
);

function OneCollection({
  id,
  base,
  collection,
  onDropped,
}: {
  id: string;
  base: CollectionsPath;
  collection: Collection;
  onDropped: () => void;
}) {
  const [dropping, setDropping] = useState(false);
  const { name, fields, indexes, uniques = [], expire } = collection;
  const path = below(base, '/{collection}', { collection: name });
  return (
    <>
      {name !== USERS && (
        <p>
          <a href={linkTo(['p', id, 'documents', name])}>Documents</a>
        </p>
      )}
      <Table
        label="Fields"
        loading={false}
        rows={fields}
        keyOf={(field) => field.name}
        empty="Any fields."
        columns={[
          { name: 'Field', show: (field) => field.name },
          { name: 'Type', show: describeType },
          { name: 'Required', show: ({ required }) => (required ? 'yes' : '') },
          { name: 'Unique', show: ({ unique, nocase }) => (unique ? (nocase ? 'in any case' : 'yes') : '') },
        ]}
      />
      <p>Indexes: {indexes.length === 0 ? 'none' : indexes.join(' · ')}</p>
      {uniques.length > 0 && <p>Unique together: {uniques.map(writeUnique).join(' · ')}</p>}
      {expire && <p>Documents expire {presentExpire({ expire })}</p>}
      <p>
        Access: {describeAccess(collection)} {name !== USERS && <a href={linkHere({ rules: '1' })}>Rules…</a>}
      </p>
      {mayChange.value && (
        <p class="row">
          <a href={linkHere({ edit: '1' })}>Edit…</a>
          {name !== USERS && (
            <button class="danger" onClick={() => setDropping(true)}>
              Drop…
            </button>
          )}
        </p>
      )}
      <Commands of={[prepare('GET', path)]} />
      {dropping && (
        <Confirm
          title="Drop the collection"
          text="This permanently deletes all its documents."
          name={name}
          request={prepare('DELETE', path)}
          done="The collection is dropped"
          onClose={() => setDropping(false)}
          onDone={onDropped}
        />
      )}
    </>
  );
}

function describeType({ type, items, ref }: Pick<CollectionField, 'type' | 'items' | 'ref'>): string {
  const of = ref ?? (items && describeType(items));
  return of === undefined ? type : `${type}(${of})`;
}

function describeAccess({ name, access, rls }: Collection): string {
  if (name === USERS) return 'each user its own record';
  if (access === 'rules') return 'by rules';
  return rls.enabled ? `${access}, by ${rls.ownerField}` : access;
}
