import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { Commands, Dialog, quote, Trouble } from '../parts/basics.js';
import { Table } from '../parts/table.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { project } from '../session.js';

interface Field {
  name: string;
  type: string;
  required?: boolean;
  unique?: boolean;
}

interface Collection {
  name: string;
  mode: string;
  fields: Field[];
  indexes: string[];
  rls: { enabled: boolean; mode?: string; ownerField?: string };
  updatedAt: string;
}

export function Collections() {
  const { parts, query } = place.value;
  const id = parts[1] ?? '';
  const path = `/api/projects/${id}/collections`;
  const { data, error, loading, reload } = useLoad<{ items: Collection[] }>(path);
  const open = data?.items.find(({ name }) => name === query.get('open'));
  const named = quote(project.value?.name ?? '');
  return (
    <>
      <h1>Collections</h1>
      <Trouble error={error} onRetry={reload} />
      <Table
        label="Collections"
        loading={loading}
        rows={data?.items ?? null}
        keyOf={({ name }) => name}
        empty="No collections."
        columns={[
          {
            name: 'Name',
            show: ({ name }) => (
              <a class="opens" href={linkHere({ open: name })}>
                {name}
              </a>
            ),
          },
          { name: 'Mode', show: ({ mode }) => mode },
          { name: 'Fields', isNumber: true, show: ({ fields }) => fields.length },
          { name: 'Indexes', isNumber: true, show: ({ indexes }) => indexes.length },
          { name: 'Who sees what', show: ({ rls }) => describeRls(rls) },
          { name: 'Changed', show: ({ updatedAt }) => moment(updatedAt) },
        ]}
      />
      <p class="muted">
        Fields and rules are changed as a file: <code>bsvc schema export</code>, then <code>bsvc schema apply</code>.
      </p>
      <Commands cli={`bsvc collection list --project ${named}`} path={path} />
      {open && (
        <Dialog title={open.name} onClose={() => goTo(linkHere({ open: null }))} wide>
          {open.name !== 'users' && (
            <p>
              <a href={linkTo(['p', id, 'documents', open.name])}>Its documents</a>
            </p>
          )}
          <Table
            label="Fields"
            loading={false}
            rows={open.fields}
            keyOf={({ name }) => name}
            empty="Any fields."
            columns={[
              { name: 'Field', show: ({ name }) => name },
              { name: 'Type', show: ({ type }) => type },
              { name: 'Required', show: ({ required }) => (required ? 'yes' : '') },
              { name: 'Unique', show: ({ unique }) => (unique ? 'yes' : '') },
            ]}
          />
          <p>Indexes: {open.indexes.length === 0 ? 'none' : open.indexes.join(' · ')}</p>
          <p>{describeRls(open.rls)}</p>
          <Commands cli={`bsvc collection show ${open.name} --project ${named}`} path={`${path}/${open.name}`} />
        </Dialog>
      )}
    </>
  );
}

function describeRls({ enabled, mode, ownerField }: Collection['rls']): string {
  if (!enabled) return 'publishable keys read all';
  return mode === 'private' ? `private, by ${ownerField ?? ''}` : `all read, ${ownerField ?? ''} writes`;
}
