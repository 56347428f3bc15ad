import { useState } from 'preact/hooks';
import { goTo, linkHere, place } from '../routes.js';

export interface FilterField {
  /** In the address. */
  name: string;
  label: string;
  choices?: readonly (readonly [value: string, name: string])[];
  /** What is shown without a choice. */
  unchosen?: string;
}

/** Narrows a list by the query of the address, so that the filtered list can be shared as a link. */
export function Filters({ fields }: { fields: readonly FilterField[] }) {
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
export function Pager({ before, name = 'before' }: { before: string | null; name?: string }) {
  const isFirst = !place.value.query.get(name);
  return (
    <p class="pages">
      {!isFirst && <a href={linkHere({ [name]: null })}>← Newest</a>}
      {before !== null && <a href={linkHere({ [name]: before })}>Older →</a>}
    </p>
  );
}
