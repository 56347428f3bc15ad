import { useId, useState } from 'preact/hooks';
import type { CollectionField } from '../../collection.js';
import { comboProps, Suggestions } from '../../parts/schema-form/suggestions.js';
import { goTo, linkHere } from '../../routes.js';
import { comparisonsOf, describeFilter, filtersOf, readFilter, type Filter } from './filter-text.js';

const MAX_SUGGESTED = 12;

/** One line of conditions as chips: `views > 10`, words, or a pasted query string. `/` comes here. */
export function FilterLine({
  fields,
  filters,
  searched,
}: {
  fields: readonly CollectionField[];
  filters: readonly Filter[];
  /** The text field that words are searched for in. */
  searched: string | null;
}) {
  const id = useId();
  const [text, setText] = useState('');
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const known: readonly CollectionField[] = [{ name: '_id', type: 'Ref' }, ...fields];
  const suggested = suggest(text, known);
  const isShown = isOpen && suggested.length > 0;
  const type = (next: string): void => {
    setText(next);
    setAt(-1);
    setOpen(true);
  };
  const apply = (): void => {
    const read = filtersOf(text, known, searched);
    if (!read) return;
    const change = Object.fromEntries(read.filters);
    goTo(linkHere({ ...change, ...(read.sort !== null && { sort: read.sort }), cursor: null }));
    type('');
    setOpen(false);
  };
  return (
    <form
      class="filter-line"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (isShown && at >= 0) type(suggested[at]!);
        else apply();
      }}
    >
      <Chips filters={filters} />
      <input
        data-search=""
        aria-label="Filter"
        {...comboProps(id, isShown, at)}
        placeholder={searched === null ? 'Filter: field > value' : `Search ${searched}, or filter: field > value`}
        value={text}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') {
            setAt(Math.min(at + 1, suggested.length - 1));
          } else if (event.key === 'ArrowUp') {
            setAt(Math.max(at - 1, -1));
          } else if (event.key === 'Escape') {
            setOpen(false);
          } else if (event.key === 'Backspace' && text === '' && filters.length > 0) {
            goTo(without(filters.at(-1)!));
          } else {
            return;
          }
          event.preventDefault();
        }}
      />
      <button>Filter</button>
      {isShown && (
        <Suggestions
          id={id}
          label="Suggestions"
          at={at}
          items={suggested.map((each) => ({ key: each, shown: each }))}
          onChoose={(index) => type(suggested[index]!)}
        />
      )}
    </form>
  );
}

function Chips({ filters }: { filters: readonly Filter[] }) {
  return (
    <>
      {filters.map((filter) => (
        <a
          key={filter[0]}
          class="chip"
          href={without(filter)}
          aria-label={`Remove the filter ${describeFilter(filter)}`}
        >
          {describeFilter(filter)} ×
        </a>
      ))}
    </>
  );
}

const without = ([name]: Filter): string => linkHere({ [name]: null, cursor: null });

/** How what is typed could go on: fields, comparisons of the field, values of an enum. */
function suggest(text: string, fields: readonly CollectionField[]): string[] {
  const { field, suffix, value } = readFilter(text);
  const found = fields.find(({ name }) => name === field);
  if (!found || (text.trim() === field && !/\s$/.test(text))) {
    if (value !== '' || suffix !== undefined) return [];
    const starts = fields.filter(({ name }) => name.toLowerCase().includes(field.toLowerCase()));
    return starts.slice(0, MAX_SUGGESTED).map(({ name }) => `${name} `);
  }
  if (suffix === undefined) {
    return comparisonsOf(found).flatMap(([, label]) => (label.startsWith(value) ? [`${field} ${label} `] : []));
  }
  const values = found.enum?.map(String) ?? (found.type === 'Boolean' ? ['true', 'false'] : []);
  const before = text.slice(0, text.length - value.length);
  const head = before.endsWith(' ') || before === '' ? before : `${before} `;
  return values.filter((each) => each.startsWith(value) && each !== value).map((each) => head + each);
}
