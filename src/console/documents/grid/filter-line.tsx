import { useId, useState } from 'preact/hooks';
import type { CollectionField } from '../../collection.js';
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
  const known = [{ name: '_id', type: 'Ref' }, ...fields];
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
    goTo(linkHere({ ...change, ...(read.sort !== null && { sort: read.sort }), cursor: null, skip: null }));
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
      {filters.map((filter) => (
        <a
          key={filter[0]}
          class="chip"
          href={linkHere({ [filter[0]]: null, cursor: null, skip: null })}
          aria-label={`Remove the filter ${describeFilter(filter)}`}
        >
          {describeFilter(filter)} ×
        </a>
      ))}
      <input
        data-search=""
        aria-label="Filter"
        role="combobox"
        aria-expanded={isShown}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        autocomplete="off"
        placeholder={searched === null ? 'Filter: field > value' : `Search ${searched}, or filter: field > value`}
        value={text}
        {...(isShown && at >= 0 && { 'aria-activedescendant': `${id}-${at}` })}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setAt(Math.min(at + 1, suggested.length - 1));
          else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, -1));
          else if (event.key === 'Escape') setOpen(false);
          else if (event.key === 'Backspace' && text === '' && filters.length > 0) {
            goTo(linkHere({ [filters.at(-1)![0]]: null, cursor: null, skip: null }));
          } else return;
          event.preventDefault();
        }}
      />
      <button>Filter</button>
      {isShown && (
        <ul class="suggested" role="listbox" id={`${id}-list`} aria-label="Suggestions">
          {suggested.map((each, index) => (
            <li
              key={each}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === at}
              // Before the input loses the focus.
              onMouseDown={(event) => {
                event.preventDefault();
                type(each);
              }}
            >
              {each}
            </li>
          ))}
        </ul>
      )}
    </form>
  );
}

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
