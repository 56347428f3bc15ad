import { useState } from 'preact/hooks';
import type { Collection, CollectionField } from '../collection.js';
import { CellValue } from '../documents/grid/cell-value.js';
import { howMany, number } from '../format.js';
import { Trouble } from '../parts/basics.js';
import { Empty } from '../parts/page-head.js';
import { Table } from '../parts/table.js';
import type { Answer } from './use-run.js';

const MAX_COLUMNS = 40;
/** More are for a download: a page of them would not scroll. */
const MAX_ROWS = 200;
const NO_TITLES: ReadonlyMap<string, string> = new Map();

/** What came of a query: as a table or as JSON, or by which index it was read. */
export function Results({ answer, collection }: { answer: Answer; collection: Collection }) {
  const [isJson, setJson] = useState(false);
  const { rows, total, explained, error, ms, isBusy } = answer;
  return (
    <section aria-label="Result" aria-busy={isBusy}>
      <Trouble error={error} />
      {explained && <Plan of={explained} />}
      {rows && (
        <>
          <div class="row centred">
            <span role="status">
              {howMany(rows.length, 'row')}
              {total !== null && total > rows.length && ` of ${number(total)}`} · {ms} ms
            </span>
            <button class="small" onClick={() => setJson(!isJson)}>
              {isJson ? 'As a table' : 'As JSON'}
            </button>
            <button class="small" disabled={rows.length === 0} onClick={() => download(rows, collection.name)}>
              Download
            </button>
          </div>
          {rows.length > MAX_ROWS && <p class="muted">The first {MAX_ROWS} are shown; the download has all.</p>}
          {isJson ? (
            <pre class="result" tabIndex={0} aria-label="Result as JSON">
              {JSON.stringify(rows.slice(0, MAX_ROWS), null, 2)}
            </pre>
          ) : (
            <RowTable rows={rows.slice(0, MAX_ROWS)} collection={collection} />
          )}
        </>
      )}
    </section>
  );
}

/** A row has no name of its own: its place is its key. */
interface PlacedRow {
  row: Record<string, unknown>;
  at: number;
}

function RowTable({ rows, collection }: { rows: readonly Record<string, unknown>[]; collection: Collection }) {
  const declared = new Map(collection.fields.map((field) => [field.name, field]));
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, MAX_COLUMNS);
  const fieldOf = (name: string): CollectionField =>
    declared.get(name) ?? { name, type: name === '_id' ? 'Ref' : 'any' };
  return (
    <Table<PlacedRow>
      label="Rows of the result"
      rows={rows.map((row, at) => ({ row, at }))}
      keyOf={({ at }) => String(at)}
      empty={<Empty title="Nothing matches" />}
      loading={false}
      columns={names.map((name) => ({
        name,
        isNumber: rows.some((row) => typeof row[name] === 'number'),
        show: ({ row }) => <CellValue field={fieldOf(name)} value={row[name]} titles={NO_TITLES} />,
      }))}
    />
  );
}

function Plan({ of: { indexes, examined, returned, plan } }: { of: NonNullable<Answer['explained']> }) {
  return (
    <>
      <p role="status" class={indexes.length === 0 ? 'warn' : 'good'}>
        {indexes.length === 0
          ? 'No index is used: every document is looked at.'
          : `Read by ${indexes.length === 1 ? 'the index' : 'the indexes'} ${indexes.join(', ')}.`}{' '}
        {howMany(examined, 'document')} looked at for {number(returned)}.
      </p>
      <details>
        <summary>The plan</summary>
        <pre tabIndex={0}>{JSON.stringify(plan, null, 2)}</pre>
      </details>
    </>
  );
}

function download(rows: readonly object[], name: string): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(rows, null, 2)], { type: 'application/json' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: `${name}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
