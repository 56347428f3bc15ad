import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { prepare, type Prepared } from '../api.js';
import type { Loaded } from '../load.js';
import { goTo, linkHere, place } from '../routes.js';
import { mayChange } from '../session.js';
import { Commands } from './commands.js';
import { Confirm, type Question } from './confirm.js';
import { Icon } from './icon.js';
import { PageHead } from './page-head.js';
import { List, Pages, type Column } from './table.js';

/** In the address, in the place of what is open: no row is called so. */
const NEW = ':new';

interface Listed<Row> {
  items: Row[];
  total?: number;
  page?: number;
  limit?: number;
}

/**
 * A list that is looked at, added to and taken from: its head and filters, a drawer for the row that the address names,
 * and the question before one is removed. What needs the right to change is left out for those without it.
 */
export function CrudScreen<Row>({
  title,
  isSection = false,
  count,
  actions,
  buttons,
  children,
  label = title,
  filters,
  list,
  keyOf,
  columns,
  empty,
  names,
  before,
  more = [],
  opened = 'open',
  add,
  view,
  form,
  remove,
}: {
  title: string;
  /** One of several lists of a screen. */
  isSection?: boolean;
  /** Shown beside the title. */
  count?: number | null | undefined;
  /** What else can be done, beside the button that adds. */
  actions?: ComponentChildren;
  /** The same for those who may only look. */
  buttons?: ComponentChildren;
  /** Between the head and the list. */
  children?: ComponentChildren;
  /** Of the table, where it is not the title. */
  label?: string;
  filters?: readonly FilterField[];
  list: Loaded<Listed<Row>>;
  keyOf: (row: Row) => string;
  columns: readonly Column<Row>[];
  empty: ComponentChildren;
  /** One and many of a list that goes by numbered pages. */
  names?: readonly [one: string, many: string];
  /** Where the next page of a list begins that goes by places; null at its end. */
  before?: string | null;
  /** Requests of the screen beside that of the list. */
  more?: readonly Prepared[];
  /** The parameter of the address that names the open row. */
  opened?: string;
  /** The button that opens the form without a row. */
  add?: string;
  /** The open row, for those who may only look; `ask` asks whether to remove it. */
  view?: (row: Row, close: () => void, ask: () => void) => ComponentChildren;
  /** The open row, or null for a new one, for those who may change it. */
  form?: (row: Row | null, close: () => void) => ComponentChildren;
  /** The question before a row is removed, with the button’s label for readers of the page; null where it stays. */
  remove?: (row: Row) => (Question & { label: string }) | null;
}) {
  const [removing, setRemoving] = useState<Question | null>(null);
  const open = place.value.query.get(opened);
  const { data } = list;
  const row = data?.items.find((each) => keyOf(each) === open) ?? null;
  const close = (): void => goTo(linkHere({ [opened]: null }));
  const removal: Column<Row> = {
    name: 'Remove',
    show: (each) => {
      const question = mayChange.value ? remove?.(each) : null;
      return question ? (
        <button class="small danger" aria-label={question.label} onClick={() => setRemoving(question)}>
          {question.title.split(' ', 1)[0]}…
        </button>
      ) : null;
    },
  };
  const acts = mayChange.value && (actions || add) && (
    <>
      {actions}
      {add && (
        <a class={isSection ? 'button' : 'button primary'} href={linkHere({ [opened]: NEW })}>
          {!isSection && <Icon name="plus" />}
          {add}
        </a>
      )}
    </>
  );
  return (
    <>
      <PageHead title={title} count={count} isSection={isSection}>
        {acts || buttons}
      </PageHead>
      {children}
      {filters && <Filters fields={filters} />}
      <List
        label={label}
        of={list}
        keyOf={keyOf}
        empty={empty}
        columns={remove && mayChange.value ? [...columns, removal] : columns}
      />
      {names && <Pages of={data as Required<Listed<Row>> | null} names={names} />}
      {before !== undefined && <Pager before={before} />}
      <Commands of={[...(list.path === null ? [] : [prepare('GET', list.path)]), ...(mayChange.value ? more : [])]} />
      {open !== null && form && mayChange.value && (row || (open === NEW && add)) && form(row, close)}
      {row && view && !(form && mayChange.value) && view(row, close, () => setRemoving(remove?.(row) ?? null))}
      {removing && <Confirm {...removing} onClose={() => setRemoving(null)} />}
    </>
  );
}

/** The first cell of a row: it opens it. */
export const opens = (key: string, text: string, opened = 'open') => (
  <a class="opens" href={linkHere({ [opened]: key })}>
    {text}
  </a>
);

interface FilterField {
  /** In the address. */
  name: string;
  label: string;
  choices?: readonly (readonly [value: string, name: string])[];
  /** What is shown without a choice. */
  unchosen?: string;
}

/** Narrows a list by the query of the address, so that the filtered list can be shared as a link. */
function Filters({ fields }: { fields: readonly FilterField[] }) {
  const { query } = place.value;
  const set = fields.filter(({ name }) => query.has(name)).length;
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {/* On a phone alone: elsewhere the filters are always there. */}
      <button class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {set === 0 ? 'Filters' : `Filters (${set})`}
      </button>
      <form
        class="row"
        role="search"
        key={fields.map(({ name }) => query.get(name) ?? '').join('\n')}
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          const change = Object.fromEntries(
            fields.map(({ name }) => [name, (given.get(name) as string | null)?.trim() ?? '']),
          );
          goTo(linkHere({ ...change, before: null, page: null }));
        }}
      >
        {fields.map(({ name, label, choices, unchosen = 'all' }, at) => (
          <label key={name}>
            {label}
            {choices ? (
              <select
                name={name}
                defaultValue={query.get(name) ?? ''}
                onChange={(event) => event.currentTarget.form?.requestSubmit()}
              >
                <option value="">{unchosen}</option>
                {choices.map(([value, text]) => (
                  <option key={value} value={value} selected={query.get(name) === value}>
                    {text}
                  </option>
                ))}
              </select>
            ) : (
              <input name={name} defaultValue={query.get(name) ?? ''} {...(at === 0 && { 'data-search': '' })} />
            )}
          </label>
        ))}
        <button>Filter</button>
      </form>
    </>
  );
}

/** To older rows by the place where this page ends, and back to the newest. */
function Pager({ before, name = 'before' }: { before: string | null; name?: string }) {
  const isFirst = !place.value.query.get(name);
  return (
    <p class="pages">
      {!isFirst && <a href={linkHere({ [name]: null })}>← Newest</a>}
      {before !== null && <a href={linkHere({ [name]: before })}>Older →</a>}
    </p>
  );
}
