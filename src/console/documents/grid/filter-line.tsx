import { useId, useState } from 'preact/hooks';
import { FILTER_FORMS } from '../../../exchange/filter-forms.js';
import type { CollectionField } from '../../collection.js';
import { comboProps, Suggestions } from '../../parts/schema-form/pickers.js';
import { goTo, linkHere } from '../../routes.js';

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

/** One condition as the API takes it. */
type Filter = readonly [name: string, value: string];

const FORMS = Object.entries(FILTER_FORMS);

/** Ways to write a comparison, beside the words of its label. */
const SIGNS: readonly (readonly [sign: string, suffix: string])[] = [
  ['>=', '_gte'],
  ['<=', '_lte'],
  ['!=', '_ne'],
  ['^=', '_startswith'],
  ['>', '_gt'],
  ['<', '_lt'],
  ['=', ''],
  [':', ''],
  ['~', '_regex'],
  ['in', '_in'],
  ...FORMS.map(([suffix, { label }]) => [label, suffix] as const),
];

/** The longest first: "is not" is no "is". */
const WORDS = [...SIGNS].sort((a, b) => b[0].length - a[0].length);

/** `views ≥ 10` of `views_gte` and 10. */
function describeFilter([name, value]: Filter): string {
  const form = FORMS.find(([suffix]) => suffix !== '' && name.endsWith(suffix));
  if (form === undefined) return `${name} is ${value}`;
  const [suffix, { label }] = form;
  return `${name.slice(0, -suffix.length)} ${label} ${value}`;
}

/** A typed condition in its parts, as far as it goes. */
interface ReadFilter {
  field: string;
  /** undefined while no comparison is typed. */
  suffix?: string;
  value: string;
}

function readFilter(text: string): ReadFilter {
  const [, field = '', rest = ''] = /^\s*([^\s=<>!~^:≥≤]*)\s*([^]*)$/.exec(text) ?? [];
  const found = WORDS.find(
    ([word]) => rest.toLowerCase().startsWith(word) && (!/\w$/.test(word) || /^(\s|$)/.test(rest.slice(word.length))),
  );
  if (!found) return { field, value: rest };
  return { field, suffix: found[1], value: rest.slice(found[0].length).trim() };
}

/**
 * What is typed or pasted as parameters of a list: a query string, a condition such as `views > 10`, or words that are
 * searched for in the text field that people know documents by. null where it is none of them.
 */
function filtersOf(
  text: string,
  fields: readonly CollectionField[],
  searched: string | null,
): { filters: Filter[]; sort: string | null } | null {
  const trimmed = text.trim();
  const pasted = readPasted(trimmed);
  if (pasted) return pasted;
  const { field, suffix, value } = readFilter(trimmed);
  const isKnown = fields.some(({ name }) => name === field.split('.')[0]) || field === '_id';
  if (suffix !== undefined && (isKnown || searched === null)) {
    return field === '' ? null : { filters: [[field + suffix, value]], sort: null };
  }
  if (trimmed === '') return null;
  if (/^[0-9a-f]{24}$/i.test(trimmed)) return { filters: [['_id', trimmed]], sort: null };
  if (searched === null) return null;
  return { filters: [[`${searched}_regex`, trimmed.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')]], sort: null };
}

/** Parameters that shape an answer and filter nothing. */
const SHAPING = new Set([
  'limit',
  'page',
  'cursor',
  'skip',
  'fields',
  'populate',
  'expand',
  'meta',
  'count',
  'include_deleted',
]);

/** A query string as an application sends it, with or without the address before it. */
function readPasted(text: string): { filters: Filter[]; sort: string | null } | null {
  const at = text.indexOf('?');
  const query = at >= 0 ? text.slice(at + 1) : /^[\w.[\]]+=\S*(&[\w.[\]]+=\S*)*$/.test(text) ? text : null;
  if (query === null || /\s/.test(query) || !query.includes('=')) return null;
  const all = [...new URLSearchParams(query)].map(
    ([name, value]) => [name.replace(/^filter\[(.+)\]$/, '$1'), value] as const,
  );
  return {
    filters: all.filter(([name]) => !SHAPING.has(name) && name !== 'sort'),
    sort: all.find(([name]) => name === 'sort')?.[1] ?? null,
  };
}

/** The types of field that have the comparisons of a kind; null for all of them. */
const TYPES: Readonly<Record<(typeof FORMS)[number][1]['takes'], readonly string[] | null>> = {
  ordered: ['Number', 'Date', 'any'],
  same: null,
  list: null,
  flag: null,
  text: ['String', 'any'],
  area: ['Object', 'Array', 'any'],
};

/** The comparisons that a field's type has, each with its label. */
function comparisonsOf({ type }: CollectionField): readonly (readonly [suffix: string, label: string])[] {
  return FORMS.filter(([, { takes }]) => TYPES[takes]?.includes(type) ?? true).map(
    ([suffix, { label }]) => [suffix, label] as const,
  );
}
