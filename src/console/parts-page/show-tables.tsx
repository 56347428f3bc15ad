/** @jsxImportSource . */
import { kit } from './given.js';
import { Live } from './live.js';
import { nothing, refuse, ROWS, type Row } from './samples.js';

const COLUMNS = [
  {
    name: 'Name',
    show: ({ name }: Row) => (
      <a class="opens" href={kit.linkHere({})}>
        {name}
      </a>
    ),
  },
  { name: 'State', show: ({ state }: Row) => <span class={`tag ${state}`}>{state}</span> },
  { name: 'Documents', show: ({ size }: Row) => size.toLocaleString('en'), isNumber: true },
];
const table = { columns: COLUMNS, keyOf: ({ id }: Row) => id };

export function Tables({ theme }: { theme: string }) {
  const loading = kit.place.value.query.has('loading');
  return (
    <>
      <Live
        first={new Set(['b2'])}
        show={(selected, onSelect) => (
          <kit.Table
            label={`Chosen rows, ${theme}`}
            {...table}
            rows={ROWS}
            empty=""
            loading={loading}
            selected={selected}
            onSelect={onSelect}
          />
        )}
      />
      <kit.Pages of={{ page: 2, limit: 3, total: 12 }} names={['collection', 'collections']} />
      <kit.Pager before="c3" />
      <kit.Table label={`No rows, ${theme}`} {...table} rows={[]} empty="Nothing yet." loading={false} />
      <kit.Table
        label={`No rows and what to do, ${theme}`}
        {...table}
        rows={[]}
        empty={
          <kit.Empty title="No collections yet">
            <p>A collection keeps documents.</p>
            <a class="button" href={kit.linkHere({})}>
              The next step
            </a>
          </kit.Empty>
        }
        loading={false}
      />
      <kit.List
        label={`Refused rows, ${theme}`}
        {...table}
        of={{ data: loading ? null : { items: [...ROWS] }, error: refuse(), loading, ms: 1, reload: nothing }}
        empty=""
      />
    </>
  );
}
