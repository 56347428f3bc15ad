import { useMemo, useRef, useState } from 'preact/hooks';
import { addressOf, api } from '../api.js';
import { cell, howMany, moment } from '../format.js';
import { useLoad } from '../load.js';
import { say, tellRefusal, Trouble } from '../parts/basics.js';
import { Commands, ofProject, quote } from '../parts/commands.js';
import { FILTER_CHOICES } from '../parts/filter-choices.js';
import { Table, type Column } from '../parts/table.js';
import { goTo, linkHere, linkTo, place } from '../routes.js';
import { mayChange, project } from '../session.js';
import type { ShownFields } from './document-fields.js';
import { DocumentDialog } from './record.js';
import { ImportDialog } from './import-documents.js';

interface Collection {
  name: string;
  mode: string;
  fields: { name: string; type: string; ref?: string; items?: { ref?: string } }[];
  indexes: string[];
}

/** Parts of the address that are not filters. */
const OWN = new Set(['cursor', 'sort', 'trash', 'open', 'import']);
const MAX_COLUMNS = 7;
const PAGE = 50;

export function Documents() {
  const { parts, query } = place.value;
  const [, id = '', , name] = parts;
  const base = `/api/projects/${id}/collections`;
  const list = useLoad<{ items: Collection[] }>(base);
  const collections = list.data?.items.filter((each) => each.name !== 'users') ?? [];
  const collection =
    collections.find((each) => each.name === name) ?? (name === undefined ? collections[0] : undefined);
  const reloadPage = useRef<(() => void) | null>(null);
  const ofDialog = name ?? collection?.name;
  const dialog = {
    base: `${base}/${ofDialog ?? ''}/documents`,
    collection: ofDialog ?? '',
    onChange: () => reloadPage.current?.(),
  };
  const open = query.get('open');
  const refs = collection?.fields.flatMap(({ name, ref, items }) => {
    const named = ref ?? items?.ref;
    return named === undefined ? [] : [{ name, ref: named }];
  });
  return (
    <>
      <h1>Documents</h1>
      <Trouble error={list.error} onRetry={list.reload} />
      {list.data && collections.length === 0 && (
        <p>
          The project has no collection yet:{' '}
          <code>bsvc collection add posts --project {project.value?.name ?? id}</code>
        </p>
      )}
      {collections.length > 0 && (
        <p class="row">
          <label>
            Collection
            <select
              value={collection?.name ?? ''}
              onChange={(event) => goTo(linkTo(['p', id, 'documents', event.currentTarget.value]))}
            >
              {!collection && <option value="">Choose a collection</option>}
              {collections.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name}
                </option>
              ))}
            </select>
          </label>
        </p>
      )}
      {list.data && name !== undefined && !collection && <p class="empty">There is no collection {name}.</p>}
      {collection && (
        <Browser
          key={collection.name}
          base={`${base}/${collection.name}`}
          collection={collection}
          onReady={(reload) => (reloadPage.current = reload)}
        />
      )}
      {/* Beside the list, so that a link to one document need not wait for the others. */}
      {open && ofDialog !== undefined && (
        <DocumentDialog
          key={open}
          {...dialog}
          id={open}
          refs={refs ?? []}
          onClose={() => goTo(linkHere({ open: null }))}
        />
      )}
      {query.get('import') && ofDialog !== undefined && mayChange.value && (
        <ImportDialog {...dialog} onClose={() => goTo(linkHere({ import: null }))} />
      )}
    </>
  );
}

function Browser({
  base,
  collection,
  onReady,
}: {
  base: string;
  collection: Collection;
  onReady: (reload: () => void) => void;
}) {
  const { query } = place.value;
  const [selected, setSelected] = useState<Set<string>>(new Set());
  const [counted, setCounted] = useState<{ of: string; count: number } | null>(null);
  const shape = useLoad<{ fields: { name: string }[] }>(collection.mode === 'flexible' ? `${base}/shape` : null);
  const filters = [...query].filter(([name]) => !OWN.has(name));
  const isTrash = query.get('trash') === '1';
  const sort = query.get('sort') ?? '';
  const names = useMemo(
    () => [
      ...new Set([
        ...collection.fields.map((field) => field.name),
        ...(shape.data?.fields.map((field) => field.name) ?? []),
      ]),
    ],
    [collection, shape.data],
  );
  const columns = names.slice(0, MAX_COLUMNS);
  const isReady = collection.mode !== 'flexible' || shape.data !== null || shape.error !== null;
  const narrowed = new URLSearchParams([...filters, ...(isTrash ? [['include_deleted', 'true']] : [])]);
  const searched = narrowed.size > 0 ? `?${narrowed}` : '';
  const listing = new URLSearchParams([
    ...narrowed,
    ['limit', String(PAGE)],
    ['cursor', query.get('cursor') ?? 'start'],
    ['fields', [...columns, 'createdAt', 'isDeleted'].join(',')],
    ...(sort === '' ? [] : [['sort', sort]]),
  ]);
  const path = `${base}/documents?${listing}`;
  const page = useLoad<{ items: ShownFields[]; nextCursor: string | null }>(isReady ? path : null);
  onReady(page.reload);
  const count = async (): Promise<void> => {
    try {
      const of = String(narrowed);
      const { count: found } = await api<{ count: number }>(
        'GET',
        `${base}/documents?${narrowed}${narrowed.size > 0 ? '&' : ''}count=true`,
      );
      setCounted({ of, count: found });
    } catch (error) {
      tellRefusal(error);
    }
  };
  const all = async (act: 'trash' | 'recover', ids: readonly string[]): Promise<void> => {
    try {
      const { done, refused } = await api<{ done: string[]; refused: { message: string }[] }>(
        'POST',
        `${base}/documents/${act}`,
        { ids },
      );
      const text = `${done.length} ${act === 'trash' ? 'moved to the trash' : 'taken back'}${refused.length > 0 ? `, ${refused.length} refused: ${refused[0]!.message}` : ''}`;
      say(text, {
        isBad: refused.length > 0,
        ...(done.length > 0 && { undo: () => void all(act === 'trash' ? 'recover' : 'trash', done) }),
      });
      setSelected(new Set());
      page.reload();
    } catch (error) {
      tellRefusal(error);
    }
  };
  const shown: Column<ShownFields>[] = [
    {
      name: '_id',
      show: (row) => (
        <a class="opens" href={linkHere({ open: row._id })}>
          {row._id.slice(0, 4)}…{row._id.slice(-4)}
        </a>
      ),
    },
    ...columns.map((name) => ({ name, show: (row: ShownFields) => cell(row[name]) })),
    ...(isTrash ? [{ name: 'In the trash', show: (row: ShownFields) => (row.isDeleted ? 'yes' : '') }] : []),
    { name: 'createdAt', show: (row) => moment(row.createdAt as string) },
  ];
  /** Of the selected ones those that are in the trash, or those that are not. */
  const chosen = (trashed: boolean): string[] =>
    (page.data?.items ?? [])
      .filter(({ _id, isDeleted }) => selected.has(_id) && (isDeleted === true) === trashed)
      .map(({ _id }) => _id);
  const options = filters.map(([name, value]) => ` --filter ${quote(`${name}=${value}`)}`).join('');
  const isUnindexed = sort !== '' && !isIndexed(collection, sort);
  return (
    <>
      <FilterBar names={names} filters={filters} />
      <p class="row">
        <SortBox names={names} sort={sort} collection={collection} />
        <a
          class="chip"
          href={linkHere({ trash: isTrash ? null : '1', cursor: null })}
          {...(isTrash && { 'aria-current': 'true' as const })}
        >
          With the trash
        </a>
        <button onClick={() => void count()}>Count</button>
        {counted?.of === String(narrowed) && <output>{howMany(counted.count, 'document')}</output>}
        <a href={addressOf(`${base}/documents/export${searched}`)} download={`${collection.name}.ndjson`}>
          {filters.length === 0 ? 'Export' : 'Export filtered'}
        </a>
        {mayChange.value && <a href={linkHere({ open: 'new' })}>Insert…</a>}
        {mayChange.value && <a href={linkHere({ import: '1' })}>Import…</a>}
      </p>
      {isUnindexed && (
        <p class="muted">No index serves this order: on a large collection it takes long and ends after ten seconds.</p>
      )}
      <Trouble error={page.error} onRetry={page.reload} />
      {mayChange.value && selected.size > 0 && (
        <p class="row" role="toolbar" aria-label="Selected documents">
          {selected.size} selected
          <button onClick={() => void all('trash', chosen(false))}>Move to the trash</button>
          {isTrash && <button onClick={() => void all('recover', chosen(true))}>Take back</button>}
          <button onClick={() => setSelected(new Set())}>Select none</button>
        </p>
      )}
      <Table
        label={`Documents of ${collection.name}`}
        columns={shown}
        rows={page.data?.items ?? null}
        keyOf={({ _id }) => _id}
        empty="No documents."
        loading={page.loading}
        {...(mayChange.value && { selected, onSelect: setSelected })}
      />
      <p class="row">
        {query.get('cursor') && <a href={linkHere({ cursor: null })}>← First page</a>}
        {page.data?.nextCursor && <a href={linkHere({ cursor: page.data.nextCursor })}>Next page →</a>}
        {page.data && (
          <span class="muted">
            {page.data.items.length} shown · {page.ms} ms
          </span>
        )}
      </p>
      <Commands
        name="List"
        cli={`bsvc data query ${collection.name} ${ofProject()}${options}${sort && ` --sort ${sort}`}${isTrash ? ' --include-deleted' : ''}`}
        path={path}
        more={[
          {
            name: 'Export',
            cli: `bsvc data export ${collection.name} ${ofProject()}${options}${isTrash ? ' --include-deleted' : ''}`,
            path: `${base}/documents/export${searched}`,
          },
        ]}
      />
    </>
  );
}

function isIndexed({ indexes }: Collection, sort: string): boolean {
  const [first = ''] = sort.replace(/^-/, '').split(',');
  return (
    ['_id', 'createdAt'].includes(first) ||
    indexes.some((index) => index.replace(/^-/, '').split(',')[0]?.trim() === first)
  );
}

function FilterBar({ names, filters }: { names: readonly string[]; filters: readonly (readonly [string, string])[] }) {
  const known = ['_id', ...names, 'createdAt', 'updatedAt'];
  return (
    <form
      class="row"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        const text = (name: string): string => (given.get(name) as string | null) ?? '';
        const field = text('field').trim();
        if (field === '') return;
        goTo(linkHere({ [field + text('operator').slice(0, -1)]: text('value'), cursor: null }));
        event.currentTarget.reset();
      }}
    >
      {filters.map(([name, value]) => (
        <a
          key={name}
          class="chip"
          href={linkHere({ [name]: null, cursor: null })}
          aria-label={`Remove the filter ${describeFilter(name, value)}`}
        >
          {describeFilter(name, value)} ×
        </a>
      ))}
      <label>
        Field
        <input name="field" list="fields" autocomplete="off" data-search="" />
      </label>
      <datalist id="fields">
        {known.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <label>
        Condition
        <select name="operator">
          {FILTER_CHOICES.map(([operator, label]) => (
            <option key={operator} value={operator}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label>
        Value
        <input name="value" autocomplete="off" />
      </label>
      <button>Filter</button>
    </form>
  );
}

/** `views_gte` and 10 as `views ≥ 10`. */
function describeFilter(name: string, value: string): string {
  const choice = FILTER_CHOICES.find(([each]) => each !== '=' && name.endsWith(each.slice(0, -1)));
  if (choice === undefined) return `${name} is ${value}`;
  const [operator, label] = choice;
  return `${name.slice(0, 1 - operator.length)} ${label} ${value}`;
}

function SortBox({ names, sort, collection }: { names: readonly string[]; sort: string; collection: Collection }) {
  const known = ['createdAt', 'updatedAt', ...names];
  const isDown = sort.startsWith('-') || sort === '';
  const field = sort.replace(/^-/, '') || 'createdAt';
  const go = (name: string, down: boolean): void =>
    goTo(linkHere({ sort: name === 'createdAt' && down ? null : `${down ? '-' : ''}${name}`, cursor: null }));
  return (
    <>
      <label>
        Sort by
        <select value={field} onChange={(event) => go(event.currentTarget.value, isDown)}>
          {known.map((name) => (
            <option key={name} value={name}>
              {name}
              {isIndexed(collection, name) ? '' : ' (not indexed)'}
            </option>
          ))}
        </select>
      </label>
      <button
        aria-label={isDown ? 'Descending: sort ascending' : 'Ascending: sort descending'}
        onClick={() => go(field, !isDown)}
      >
        {isDown ? '↓' : '↑'}
      </button>
    </>
  );
}
