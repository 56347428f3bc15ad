import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { CollectionField } from '../../collection.js';
import { FormContext } from '../../parts/schema-form/form-place.js';
import { SchemaFields } from '../../parts/schema-form/schema-form.js';
import type { RecordView } from './record-view.js';

const TYPES = ['String', 'Number', 'Boolean', 'Date', 'Array', 'Object', 'Ref'] as const;

/** A form made from the schema; fields that nobody declared have the input that their value asks for. */
export function RecordForm({ collection, collections, record, isFixed }: RecordView) {
  const { fields, setFields, errors, report } = record;
  const [added, setAdded] = useState<readonly CollectionField[]>([]);
  const others = useMemo(() => {
    const declared = new Set([...collection.fields, ...added].map(({ name }) => name));
    return Object.entries(fields).flatMap(([name, value]) =>
      declared.has(name) ? [] : [{ name, type: typeOf(value) } satisfies CollectionField],
    );
  }, [collection, added, fields]);
  const form = useRef<HTMLFormElement>(null);
  // What is to be typed, rather than the button that closes; who has gone on already stays there.
  useEffect(() => {
    const { activeElement: now } = document;
    if (!isFixed && (now === document.body || now?.getAttribute('aria-label') === 'Close')) {
      form.current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    }
  }, []);
  // To the first field that was refused: it may be out of sight.
  useEffect(() => {
    if (record.error) form.current?.querySelector<HTMLElement>('.wrong :is(input, select, textarea)')?.focus();
  }, [record.error]);
  const place = { collections, isFixed, errors, report };
  const shown = [...collection.fields, ...others, ...added];
  const named = new Set(shown.map(({ name }) => name));
  const elsewhere = [...errors].filter(([path]) => !named.has(path.split('.')[0]!));
  return (
    <FormContext.Provider value={place}>
      <form
        ref={form}
        class="schema-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (record.canSave) void record.save();
        }}
      >
        <SchemaFields fields={shown} value={fields} onChange={setFields} />
        {elsewhere.map(([path, message]) => (
          <p key={path} class="field-error" role="alert">
            {path}: {message}
          </p>
        ))}
        {shown.length === 0 && <p class="muted">The collection declares no fields: add the first one.</p>}
        {/* Enter in a field saves, as in every form. */}
        <button class="hidden" tabIndex={-1} aria-hidden="true" />
      </form>
      {!isFixed && collection.mode === 'flexible' && (
        <AddField known={named} onAdd={(field) => setAdded([...added, field])} />
      )}
    </FormContext.Provider>
  );
}

function AddField({ known, onAdd }: { known: ReadonlySet<string>; onAdd: (field: CollectionField) => void }) {
  const [name, setName] = useState('');
  const [type, setType] = useState<(typeof TYPES)[number]>('String');
  const trimmed = name.trim();
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (trimmed === '' || known.has(trimmed)) return;
        onAdd({ name: trimmed, type, ...(type === 'Array' && { items: { type: 'String' } }) });
        setName('');
      }}
    >
      <label>
        Another field
        <input value={name} autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label>
        Type
        <select value={type} onChange={(event) => setType(TYPES[event.currentTarget.selectedIndex]!)}>
          {TYPES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <button disabled={trimmed === '' || known.has(trimmed)}>Add the field</button>
    </form>
  );
}

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

function typeOf(value: unknown): CollectionField['type'] {
  if (typeof value === 'string') return MOMENT.test(value) ? 'Date' : 'String';
  if (typeof value === 'number') return 'Number';
  if (typeof value === 'boolean') return 'Boolean';
  return Array.isArray(value) ? 'Array' : 'Object';
}
